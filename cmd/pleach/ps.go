package main

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// psCommand shows what the processes of a running job are doing.
type psCommand struct {
	groupFlags
	json, watch bool
}

func newPs() *cobra.Command {
	var p psCommand
	cmd := &cobra.Command{
		Use:   "ps [ADDRESS...]",
		Short: "Show what the processes of a running job are doing, and who holds them up",
		Long: `Ask every process of a running job (a program that uses pleach.World) what it is
doing: which collective call it is in and for how long, whose messages it waits for,
which call was over last, and whose tasks it does. Whoever holds up the others comes
first, with the call that it has not come to.

The address of any one process is enough: it knows the others. Give several if some
may be dead. Without an address, the jobs that you run on this host are looked for,
by the environment of your processes (on Linux): if there is one, it is shown, if
there are several, they are listed. So this works beside any pleach run.

Processes answer though their program is busy elsewhere. One that does not, because
it is stopped or its host is silent, is shown as one that does not answer.`,
		Example: `  pleach ps
  pleach ps 127.0.0.1:7000 --group orders
  pleach ps --watch
  pleach ps 10.0.0.5:27600 --json | jq '.holding_up[].rank'`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, address := range args {
				if err := checkAddress(address); err != nil {
					return err
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	p.addFlags(cmd)
	cmd.Flags().BoolVar(&p.json, "json", false, "print a JSON object, on one line")
	cmd.Flags().BoolVar(&p.watch, "watch", false, "go on, and print it again every second")
	return cmd
}

// psAgain is how often --watch asks.
const psAgain = time.Second

func (p *psCommand) run(cmd *cobra.Command, addresses []string) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if len(addresses) == 0 {
		job, err := onlyJob(findJobs("/proc", c.Group))
		if err != nil {
			return failure{err}
		}
		c.Group, addresses = job.group, job.addresses
	}
	for {
		s, err := survey(ctx, c, addresses)
		if err == nil {
			err = p.write(out, s)
		}
		if err != nil || !p.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(psAgain):
		}
		// Whoever was there is asked, should the first be gone.
		addresses = s.addresses()
	}
}

func (p *psCommand) write(w io.Writer, s *psSurvey) (err error) {
	if p.json {
		err = json.NewEncoder(w).Encode(s)
	} else {
		_, err = io.WriteString(w, s.text())
	}
	if err != nil {
		return failure{err}
	}
	return nil
}

// psSurvey is what all processes say.
type psSurvey struct {
	View      uint64      `json:"view"`
	Size      int         `json:"size"`
	Failed    []int       `json:"failed"`
	HoldingUp []psHolder  `json:"holding_up"`
	Processes []psProcess `json:"processes"` // who holds up the others first
}

// psProcess is what one says, or why it does not.
type psProcess struct {
	Rank    int                   `json:"rank"`
	Address string                `json:"address"`
	Worlds  []collective.Progress `json:"worlds,omitempty"`
	Error   string                `json:"error,omitempty"`
}

// psHolder is somebody whom others wait for in a call that it has not come to.
type psHolder struct {
	Rank  int               `json:"rank"`
	World string            `json:"world,omitempty"`
	Call  collective.CallStatus  `json:"call"`           // the others'
	Last  *collective.CallStatus `json:"last,omitempty"` // its own
	// Silent says that it does not answer.
	Silent bool `json:"silent,omitempty"`
}

// psAtOnce is how many processes are asked at a time.
const psAtOnce = 64

// survey asks who is there, and then each of them.
func survey(ctx context.Context, c pleach.Config, addresses []string) (*psSurvey, error) {
	view, err := look(ctx, c, addresses)
	if err != nil {
		return nil, err
	}
	s := &psSurvey{View: view.Number, Size: view.Slots, Failed: holes(view), HoldingUp: []psHolder{}}
	s.Processes = make([]psProcess, len(view.Members))
	var asking sync.WaitGroup
	room := make(chan struct{}, psAtOnce)
	for i, m := range view.Members {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			timed, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			p := psProcess{Rank: m.Rank, Address: m.Address}
			switch inspection, err := pleach.Inspect(timed, c, m.Address); {
			case err != nil:
				p.Error = withoutPackage(err)
			case inspection.Progress == nil:
				p.Error = "this member is not in a World: it makes no collective calls"
			default:
				p.Worlds = inspection.Progress
			}
			s.Processes[i] = p
		})
	}
	asking.Wait()
	s.judge()
	return s, nil
}

func (s *psSurvey) addresses() (all []string) {
	for _, p := range s.Processes {
		all = append(all, p.Address)
	}
	return all
}
