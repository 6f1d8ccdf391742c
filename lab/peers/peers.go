package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// peerSystem is a system that people use now.
type peerSystem struct {
	broadcast.System
	module string // for its version
}

// peers lists the quiet ones first: members of the last three work all the time, and
// their background work must not be counted as memory of others.
func peers() []peerSystem {
	return []peerSystem{natsPeer(), grpcPeer(), memberlistPeer(), serfPeer(), gossipsubPeer()}
}

// version is that of the module this program was built with.
func (p *peerSystem) version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "?"
	}
	for _, m := range info.Deps {
		if m.Path == p.module {
			return m.Version
		}
	}
	return "?"
}

// timeout is how long members may take to find each other.
const timeout = 60 * time.Second

// await polls a condition.
func await(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// closeAll closes all members at the same time, as closing may block.
func closeAll[M any](members []M, closeOne func(M) error) error {
	errs := make([]error, len(members))
	var closing sync.WaitGroup
	for i, m := range members {
		closing.Go(func() { errs[i] = closeOne(m) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
