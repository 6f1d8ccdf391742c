package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Why an agent is not a member yet, its group tells in the log alone. So the agent reads along
// while it joins, and commands that need the group say it, too.

// maxCauses is the number of members that are remembered, and saidCauses the number in a text.
const (
	maxCauses  = 64
	saidCauses = 3
)

// joinCauses is why an agent is not a member yet.
type joinCauses struct {
	mu       sync.Mutex
	progress string            // how far it is
	members  map[string]string // why an address does not help, by address
}

// forget deletes all causes.
func (j *joinCauses) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress, j.members = "", nil
}

// text says why, or "".
func (j *joinCauses) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var parts []string
	for i, address := range slices.Sorted(maps.Keys(j.members)) {
		if i == saidCauses {
			parts = append(parts, fmt.Sprintf("%d more", len(j.members)-i))
			break
		}
		parts = append(parts, address+": "+j.members[address])
	}
	text := strings.Join(parts, ", ")
	switch {
	case text == "":
		return j.progress
	case j.progress == "":
		return text
	}
	return j.progress + "\nfailed so far: " + text
}

// note remembers a line of the log, if it says why.
func (j *joinCauses) note(r slog.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch r.Message {
	case "looking for the group, or for processes to begin it with":
		j.progress = attribute(r, "found")
	case "started again: voting in the old place until a view admits this process":
		j.progress = "it votes in its old place until the others are back"
	case "request is retried":
		j.blame(attribute(r, "member"), attribute(r, "cause"))
	case "cannot connect":
		j.blame(attribute(r, "address"), attribute(r, "cause"))
	}
}

// blame remembers why an address does not help.
func (j *joinCauses) blame(address, cause string) {
	if j.members == nil || len(j.members) >= maxCauses {
		j.members = make(map[string]string)
	}
	for _, before := range []string{"tcp: request to " + address + ": ", "dial tcp " + address + ": ", "connect: "} {
		cause = strings.TrimPrefix(cause, before)
	}
	j.members[address] = cause
}

func attribute(r slog.Record, name string) (text string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == name {
			text = a.Value.String()
		}
		return text == ""
	})
	return text
}

// joinLog is a log from which causes are taken.
type joinLog struct {
	slog.Handler
	causes *joinCauses
}

// Handle implements [slog.Handler].
func (l joinLog) Handle(ctx context.Context, r slog.Record) error {
	l.causes.note(r)
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l joinLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return joinLog{l.Handler.WithAttrs(attrs), l.causes}
}

// WithGroup implements [slog.Handler].
func (l joinLog) WithGroup(name string) slog.Handler {
	return joinLog{l.Handler.WithGroup(name), l.causes}
}
