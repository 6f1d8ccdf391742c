// Package ps finds out what the processes of a running job are doing and which of
// them hold up the others. It asks the processes; printing is left to the caller.
package ps

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// Survey is what all processes of a job answer.
type Survey struct {
	View       uint64      `json:"view"`
	Size       int         `json:"size"`
	Failed     []int       `json:"failed"`
	NoQuorum   string      `json:"no_quorum,omitempty"` // why there is none
	Stragglers []Straggler `json:"holding_up"`
	Processes  []Process   `json:"processes"` // stragglers first
}

// Process is what one process answers, or why it does not.
type Process struct {
	Rank    int                   `json:"rank"`
	Address string                `json:"address"`
	Worlds  []collective.Progress `json:"worlds,omitempty"`
	Error   string                `json:"error,omitempty"`
}

// Straggler is a process that others wait for in a call that it has not come to.
type Straggler struct {
	Rank  int                    `json:"rank"`
	World string                 `json:"world,omitempty"`
	Call  collective.CallStatus  `json:"call"`           // the others'
	Last  *collective.CallStatus `json:"last,omitempty"` // its own
	// Silent says that it does not answer.
	Silent bool `json:"silent,omitempty"`
}

// maxQueries is how many processes are asked at a time.
const maxQueries = 64

// Ask asks every process of a view, each for at most the timeout, and finds the
// stragglers. Failed are the ranks of the view without a process.
func Ask(ctx context.Context, c pleach.Config, view pleach.View, failed []int, timeout time.Duration) *Survey {
	s := &Survey{View: view.Number, Size: view.Slots, Failed: failed, Processes: make([]Process, view.Size())}
	if view.Err != nil {
		s.NoQuorum = strings.TrimPrefix(view.Err.Error(), "pleach: ")
	}
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxQueries)
	for i, m := range view.Members() {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			timed, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			p := Process{Rank: m.Rank, Address: m.Address}
			switch i, err := pleach.Inspect(timed, c, m.Address); {
			case err != nil:
				p.Error = strings.TrimPrefix(err.Error(), "pleach: ")
			case i.Progress == nil:
				p.Error = "this member is not in a World: it makes no collective calls"
			default:
				p.Worlds = i.Progress
			}
			s.Processes[i] = p
		})
	}
	asking.Wait()
	s.findStragglers()
	return s
}

// Addresses are those of all processes.
func (s *Survey) Addresses() (all []string) {
	for _, p := range s.Processes {
		all = append(all, p.Address)
	}
	return all
}
