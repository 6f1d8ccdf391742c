package main

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/cli/clitest"
	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/lab/bench/collectives"
	"github.com/pleach-go/pleach/lab/bench/cp"
	"github.com/pleach-go/pleach/lab/bench/fleet"
	"github.com/pleach-go/pleach/lab/bench/order"
	"github.com/pleach-go/pleach/lab/bench/restart"
	"github.com/pleach-go/pleach/lab/bench/scale"
	"github.com/pleach-go/pleach/lab/bench/shards"
	"github.com/pleach-go/pleach/lab/bench/silent"
	"github.com/pleach-go/pleach/lab/bench/sort"
	"github.com/pleach-go/pleach/lab/experiments/reproduce"
	"github.com/pleach-go/pleach/lab/experiments/tune"
	"github.com/pleach-go/pleach/logp"
)

// Scripts read what --json writes.
func TestGoldenJSONFields(t *testing.T) {
	clitest.GoldenFields(t, newRoot(), map[string][]byte{
		"sim": simJSON(t),
		"sim --trace": clitest.WrittenBy(t,
			func(w io.Writer) (err error) { logp.WriteTrace(w, &err)(clitest.Filled[logp.Event]()); return err }),
		"tree": []byte(printed(t, "tree", "-P", "4", "--fail", "1", "--json")),
		"tune": tuneJSON(t),
		"reproduce": clitest.WrittenBy(t,
			func(w io.Writer) error { return reproduce.WriteClaims(w, clitest.Filled[[]reproduce.Claim]()) }),
		"bench broadcast": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&broadcastCommand{json: true}).write(w, clitest.Filled[[]broadcast.Result]())
		}),
		"bench stabilization": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&stabilizationCommand{json: true}).write(w, clitest.Filled[stabilizationJSON]())
		}),
		"bench collectives": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&collectivesCommand{json: true}).write(w, clitest.Filled[[]collectives.Result]())
		}),
		"bench collectives --choices": clitest.WrittenBy(t,
			(&collectivesCommand{json: true, config: collectives.Config{Members: []int{8}}}).writeChoices),
		"bench fleet": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&fleetCommand{json: true}).write(w, &clitest.Filled[[]fleet.Result]()[0])
		}),
		"bench order": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&orderCommand{json: true}).write(w, clitest.Filled[[]order.Result]())
		}),
		"bench scale": clitest.WrittenBy(t,
			func(w io.Writer) error { return (&scaleCommand{json: true}).write(w, clitest.Filled[[]scale.Result]()) }),
		"bench silent": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&silentCommand{json: true}).write(w, clitest.Filled[[]silent.Result]())
		}),
		"bench shards": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&shardsCommand{json: true}).write(w, &clitest.Filled[[]shards.Result]()[0])
		}),
		"bench sort": clitest.WrittenBy(t, func(w io.Writer) error {
			r := clitest.Filled[sort.Result]()
			return (&benchSortCommand{json: true}).write(w, &r)
		}),
		"bench cp": clitest.WrittenBy(t, func(w io.Writer) error {
			r := clitest.Filled[cp.Result]()
			return (&benchCpCommand{json: true}).write(w, &r)
		}),
		"bench restart": clitest.WrittenBy(t, func(w io.Writer) error {
			return (&restartCommand{json: true}).write(w, clitest.Filled[restart.Result]())
		}),
		"version": clitest.WrittenBy(t,
			func(w io.Writer) error { return json.NewEncoder(w).Encode(clitest.Filled[cli.Build]()) }),
	})
}

// simJSON is runs that have all fields between them.
func simJSON(t *testing.T) (text []byte) {
	for _, args := range [][]string{
		{"--faults", "1", "--fail", "3", "--die", "5#3"},
		{"--dissemination", "gossip", "--gossip-rounds", "4"},
		{"--dissemination", "gossip", "--gossip-time", "9"},
		{"--start", "overlapped", "--correction", "optimized:2"},
	} {
		text = append(text, printed(t, append([]string{"sim", "-P", "16", "--runs", "1", "--json"}, args...)...)...)
	}
	return text
}

func tuneJSON(t *testing.T) []byte {
	return clitest.WrittenBy(t, func(w io.Writer) error {
		cmd := &cobra.Command{}
		cmd.SetOut(w)
		q, a := clitest.Filled[tune.Question](), clitest.Filled[tune.Answer]()
		return (&tuneCommand{json: true}).writeJSON(cmd, &q, &a,
			&calibration{calls: collectiveCalibration{tasks: 8, hosts: 2}})
	})
}
