package main

import (
	"cmp"
	"io"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/draw"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
)

// observe writes the trace and draws the timeline of the first run, if they are
// asked for. It is a run of its own: telling events would slow down the others.
func (s *simCommand) observe(scenario *experiments.Scenario, stdout io.Writer) error {
	var timeline *draw.Timeline
	if s.timeline != "" {
		var err error
		timeline, err = draw.NewTimeline(scenario.Size, scenario.Root, scenario.O)
		if err != nil {
			return cli.FlagError("timeline", err)
		}
	}
	watch := func(w io.Writer) error { return watchFirstRun(scenario, w, timeline) }
	var err error
	switch {
	case s.trace == "-":
		err = cli.Buffered(stdout, watch)
	case s.trace != "":
		err = writeFile(s.trace, watch)
	case timeline != nil:
		err = watch(io.Discard)
	}
	if err != nil {
		return cli.Failure(err)
	}
	if timeline == nil {
		return nil
	}
	return savePicture(s.timeline, func(w io.Writer) error {
		return timeline.Write(w, s.describeProtocol(scenario), s.describeGroup(scenario))
	})
}

// watchFirstRun writes the events of the first run to w, and adds them to the
// timeline if there is one.
func watchFirstRun(scenario *experiments.Scenario, w io.Writer, timeline *draw.Timeline) error {
	var writeErr error
	tell := logp.WriteTrace(w, &writeErr)
	_, err := scenario.Trace(0, func(e logp.Event) {
		tell(e)
		if timeline != nil {
			timeline.Add(e)
		}
	})
	return cmp.Or(err, writeErr)
}
