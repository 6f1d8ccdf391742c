package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/transfer"
)

// copyProgress shows on a terminal how far a copy is, once it turns out to be long: first
// what the agent has of the file, then what is on its way to the members.
type copyProgress struct {
	bar  *progressbar.ProgressBar // nil in a pipe
	name string
	last transfer.Progress
}

func newCopyProgress(w io.Writer, name string, size int64) *copyProgress {
	if !cli.IsTerminal(w) {
		return &copyProgress{name: name}
	}
	return &copyProgress{name: name, bar: progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(cli.Late(w)),
		progressbar.OptionSetDescription(name+" to the agent"),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
	)}
}

// Write counts what the agent reads.
func (p *copyProgress) Write(b []byte) (int, error) {
	if p.bar != nil {
		_ = p.bar.Add(len(b)) // an error of the bar means only that it is not seen
	}
	return len(b), nil
}

// update shows what is on its way.
func (p *copyProgress) update(now transfer.Progress) {
	p.last = now
	if p.bar != nil {
		p.bar.Describe(p.name + " to " + cli.Count(now.Members, "member"))
		p.bar.ChangeMax64(max(now.Total, 1))
		_ = p.bar.Set64(now.Sent)
	}
}

// stop removes the bar.
func (p *copyProgress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
