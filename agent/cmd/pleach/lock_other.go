//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
)

var errNoGroups = errors.New(
	"pleach lock needs process groups, which this system does not have: use /v1/locks of the agent")

func signalNamed(string) (os.Signal, error) { return nil, errNoGroups }

func forwarded() (<-chan os.Signal, func()) { return nil, func() {} }

type supervised struct {
	ended chan struct{}
	left  []int
}

func startSupervised(*exec.Cmd, time.Time, os.Signal) (*supervised, error) { return nil, errNoGroups }

func (s *supervised) signal(os.Signal) {}
func (s *supervised) terminate()       {}
func (s *supervised) hold(time.Time)   {}
func (s *supervised) kill()            {}
func (s *supervised) code() int        { return 1 }

func newLockSupervisor() *cobra.Command { return &cobra.Command{Use: "lock-supervisor", Hidden: true} }

func commandCode(error) int { return 126 }
