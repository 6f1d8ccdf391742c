package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Script is a list of faults and their times; see [Parse].
type Script []Statement

// Statement is one line of a script.
type Statement struct {
	At    time.Duration // after the start of the script; 0 is at once
	Fault Fault
}

// String returns the line of a script.
func (s Statement) String() string {
	if s.At == 0 {
		return s.Fault.String()
	}
	return fmt.Sprintf("at %v %v", s.At, s.Fault)
}

// String returns the script's text, one statement per line.
func (s Script) String() string {
	var b strings.Builder
	for _, statement := range s {
		b.WriteString(statement.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Run applies the faults of a script, each at its time from now, and returns after the
// last one. Faults of the same time are applied in the order of the script. If the
// context ends first, Run returns an error that names the next statement.
func (n *Network) Run(ctx context.Context, script Script) error {
	script = slices.Clone(script)
	slices.SortStableFunc(script, func(a, b Statement) int { return cmp.Compare(a.At, b.At) })
	start := n.config.Clock.Now()
	for _, s := range script {
		if err := n.sleepUntil(ctx, start.Add(s.At)); err != nil {
			return fmt.Errorf("fault: script stopped before %q: %w", s, err)
		}
		n.Do(s.Fault)
	}
	return nil
}

// sleepUntil returns early, with the cause, if the context ends first.
func (n *Network) sleepUntil(ctx context.Context, t time.Time) error {
	wait := t.Sub(n.config.Clock.Now())
	if wait <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	over := make(chan struct{})
	stop := n.config.Clock.AfterFunc(wait, func() { close(over) })
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		stop()
		return context.Cause(ctx)
	}
}
