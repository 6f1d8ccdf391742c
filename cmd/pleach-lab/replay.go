package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/cli"
	"github.com/pleach-go/pleach/internal/record"
	"github.com/pleach-go/pleach/protocol"
)

// replayCommand runs a member again over what came in.
type replayCommand struct {
	json  bool
	until time.Duration
}

func newReplay() *cobra.Command {
	var r replayCommand
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run a member again over a recording of what came in",
		Long: `Run the protocols of one member over a recording, which pleach join --record and
Group.WriteRecording write, and print a timeline: views, connections, suspicions,
freezes of view changes, and the quorum. No network is used. Times are in seconds since
the member began.

Every frame that the member sends, and every message that it delivers, is compared
with what it sent and delivered then. The first difference is an error that names the
input before it: the file is of another version of Pleach, or there is a bug. The state
in the end, of which the hash is printed, is the one that the member had.

A recording that reached its limit is replayed up to there. It contains the messages of
the group, so keep it as secret as those.`,
		Example: `  pleach join 127.0.0.1:7000 --record incident.rec
  pleach-lab replay incident.rec
  pleach-lab replay incident.rec --until 12.5s
  pleach-lab replay incident.rec --json | jq 'select(.event == "suspects")'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("write the name of one recording, as in pleach-lab replay incident.rec")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.OutOrStdout(), args[0]) },
	}
	cmd.Flags().BoolVar(&r.json, "json", false, "print JSON, an object on each line")
	cmd.Flags().DurationVar(&r.until, "until", 0, "stop at this `time` since the member began (default at the end)")
	return cmd
}

func (r *replayCommand) run(out io.Writer, name string) error {
	if r.until < 0 {
		return fmt.Errorf("--until %v: write a time since the member began, as in 12.5s", r.until)
	}
	recording, err := readRecording(name)
	if err != nil {
		return cli.Failure(err)
	}
	until := protocol.Never
	if r.until > 0 {
		until = protocol.Time(r.until)
	}
	return cli.Buffered(out, func(out io.Writer) error {
		var printErr error
		result, err := recording.Replay(until, func(e record.Event) {
			if printErr == nil {
				printErr = r.writeEvent(out, e)
			}
		})
		if err == nil && printErr == nil {
			printErr = r.writeEnd(out, recording, result)
		}
		return cli.Failure(errors.Join(err, printErr))
	})
}

// readRecording reads a file that is not too long to be one.
func readRecording(name string) (*record.Recording, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > 2*record.MaxBytes {
		return nil, fmt.Errorf("%s: %w: it has %d bytes", name, record.ErrMalformed, info.Size())
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	recording, err := record.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return recording, nil
}

// eventJSON is a line of the timeline.
type eventJSON struct {
	Event string `json:"event"`
	At    int64  `json:"at_ns"`
	Text  string `json:"text"`
}

func (r *replayCommand) writeEvent(out io.Writer, e record.Event) error {
	if r.json {
		return json.NewEncoder(out).Encode(eventJSON{e.Kind, int64(e.At), e.Text})
	}
	_, err := fmt.Fprintf(out, "%12.6f  %-9s  %s\n", float64(e.At)/1e9, e.Kind, cli.Printable(e.Text))
	return err
}

// endJSON is the last line.
type endJSON struct {
	Event    string    `json:"event"`
	At       int64     `json:"at_ns"`
	Began    time.Time `json:"began"`
	Rank     int       `json:"rank"`
	View     uint64    `json:"view"`
	Members  []int     `json:"members"`
	State    string    `json:"state"`
	Inputs   int       `json:"inputs"`
	Complete bool      `json:"complete"`
	Cut      bool      `json:"cut"`
	Hash     string    `json:"hash"`
	// Counters of messages and segments, as in Group.Stats.
	Broadcast  uint64 `json:"broadcast"`
	Delivered  uint64 `json:"delivered"`
	Relayed    uint64 `json:"relayed"`
	Grafted    uint64 `json:"grafted"`
	Repaired   uint64 `json:"repaired"`
	Offers     uint64 `json:"offers"`
	Requests   uint64 `json:"requests"`
	Duplicates uint64 `json:"duplicates"`
	Early      uint64 `json:"early"`
	Lost       uint64 `json:"lost"`
	Refused    uint64 `json:"refused"`
}

// newEndJSON is where a replay has ended.
func newEndJSON(recording *record.Recording, result *record.Result) endJSON {
	view, s := result.State.View, result.State.Stats
	e := endJSON{
		Event: "end", At: int64(result.At), Began: time.Unix(0, recording.Setup.Began).UTC(), Rank: int(recording.Setup.Self.Rank),
		View: view.Number, Members: []int{}, State: result.State.State, Inputs: result.Inputs, Complete: result.Complete, Cut: recording.Cut,
		Hash: fmt.Sprintf("%08x", result.Hash), Broadcast: s.Broadcast, Delivered: s.Delivered, Relayed: s.Relayed, Grafted: s.Grafted,
		Repaired: s.Repaired, Offers: s.Offers, Requests: s.Requests, Duplicates: s.Duplicates, Early: s.Early, Lost: s.Lost, Refused: s.Refused,
	}
	for _, m := range view.Members.All() {
		e.Members = append(e.Members, int(m.Rank))
	}
	return e
}

func (r *replayCommand) writeEnd(out io.Writer, recording *record.Recording, result *record.Result) error {
	e := newEndJSON(recording, result)
	if r.json {
		return json.NewEncoder(out).Encode(e)
	}
	verdict := "the same state as then"
	switch {
	case !e.Complete:
		verdict = fmt.Sprintf("%d inputs are left", recording.Inputs-e.Inputs)
	case e.Cut:
		verdict += "; the recording reached its limit here"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nrank %d, which began at %s, after %.6f s and %d inputs: %s\n", e.Rank, e.Began.Format(time.RFC3339Nano), float64(e.At)/1e9, e.Inputs, verdict)
	fmt.Fprintf(&b, "view %d: %s; state %s; hash %s\n", e.View, cli.Count(len(e.Members), "member"), e.State, e.Hash)
	fmt.Fprintf(&b, "messages: %d broadcast, %d delivered; correction: %s, %s\n",
		e.Broadcast, e.Delivered, cli.Count(int(e.Offers), "offer"), cli.Count(int(e.Requests), "request"))
	fmt.Fprintf(&b, "segments: %d relayed, %d grafted, %d repaired, %d lost, %d refused, %d received twice, %d early\n",
		e.Relayed, e.Grafted, e.Repaired, e.Lost, e.Refused, e.Duplicates, e.Early)
	_, err := io.WriteString(out, b.String())
	return err
}
