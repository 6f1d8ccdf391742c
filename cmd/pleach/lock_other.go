//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

var errNoGroups = errors.New("pleach lock needs process groups, which this system does not have: use /v1/locks of the agent")

func signalNamed(string) (os.Signal, error) { return nil, errNoGroups }

func forwarded() (<-chan os.Signal, func()) { return nil, func() {} }

type processGroup struct{ ended chan struct{} }

func startGroup(*exec.Cmd) (*processGroup, error) { return nil, errNoGroups }

func (g *processGroup) signal(os.Signal) {}
func (g *processGroup) kill()            {}
func (g *processGroup) code() int        { return 1 }

func commandCode(error) int { return 126 }
