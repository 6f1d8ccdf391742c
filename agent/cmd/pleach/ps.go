package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/ps"
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
		Short: "Show the calls of the processes of a running job, and which processes block the others",
		Long: `Ask every process of a running job (a program that uses pleach.World) what it is
doing: the collective call that it is in and for how long, the ranks that it waits
for, its last completed call, and the tasks that it owns. Stragglers, the processes
that hold up the others, come first, with the call that they have not reached.

The address of one process is enough: it knows the others. Give several if some may
be dead. If it is a job of yours on this host, its group need not be named. Without an address, pleach ps looks for your jobs on this host, in the
environment of your processes, by any launcher (on Linux only). If there is one, it is shown; if there
are several, they are listed.

A process answers even if its program is busy elsewhere. A process that is stopped, or
whose host is unreachable, is shown as one that does not answer.`,
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
	cmd.Flags().BoolVar(&p.watch, "watch", false, "keep running, and print it again every second")
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
		job, err := onlyJob(ps.FindJobs("/proc", c.Group))
		if err != nil {
			return cli.Failure(err)
		}
		c.Group, addresses = job.Group, job.Addresses
	}
	if job := jobAt(ps.FindJobs("/proc", c.Group), addresses); job != nil {
		c.Group = job.Group
		if c.Security.TLS == nil && c.Security.Secret == nil && c.Security.SecretFile == "" {
			c.Security.Secret = job.Secret
		}
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
		// Another process is asked if the first is gone.
		addresses = s.Addresses()
	}
}

func (p *psCommand) write(w io.Writer, s *ps.Survey) (err error) {
	if p.json {
		err = json.NewEncoder(w).Encode(s)
	} else {
		_, err = io.WriteString(w, surveyText(s))
	}
	return cli.Failure(err)
}

// survey asks which processes there are, and then each of them.
func survey(ctx context.Context, c pleach.Config, addresses []string) (*ps.Survey, error) {
	view, err := look(ctx, c, addresses)
	if err != nil {
		return nil, err
	}
	return ps.Ask(ctx, c, view, holes(view), lookTimeout), nil
}

// jobAt returns the job of this host with one of these addresses, or nil. Its name and its
// secret need not be given then; only its own user finds them.
func jobAt(jobs []*ps.Job, addresses []string) *ps.Job {
	for _, j := range jobs {
		if slices.ContainsFunc(j.Addresses, func(a string) bool { return slices.Contains(addresses, a) }) {
			return j
		}
	}
	return nil
}

// onlyJob returns the one that there is, or says how to choose.
func onlyJob(jobs []*ps.Job) (*ps.Job, error) {
	switch len(jobs) {
	case 0:
		return nil, errors.New(
			"no job of yours runs on this host, as far as can be seen: write the address of one of its processes, as in pleach ps 127.0.0.1:7000 --group NAME")
	case 1:
		return jobs[0], nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs of yours run on this host: choose one by --group", len(jobs))
	for _, j := range jobs {
		fmt.Fprintf(&b, "\n  --group %s  (%s, one with pid %d)", cli.Printable(j.Group), cli.Count(len(j.Addresses), "rank"),
			j.PIDs[0])
	}
	return nil, errors.New(b.String())
}
