//go:build !unix

package bench

import (
	"context"
	"errors"
	"time"
)

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

func checkOpenFiles(*Config) error { return nil }

var errNeedsUnix = errors.New("bench: processes need a Unix system: they inherit sockets")

func newRemote(context.Context, []string, *plan) (group, error) { return nil, errNeedsUnix }

// ServeMember would be one member in a process of its own.
func ServeMember(context.Context, string, int, int) error { return errNeedsUnix }
