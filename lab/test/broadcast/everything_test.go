package broadcast_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// shapes are the trees that the tests go through.
func shapes(l, o protocol.Time) []topology.Shape {
	return []topology.Shape{
		topology.Binomial(), topology.KAry(2), topology.KAry(4),
		topology.Lame(2), topology.Lame(3), topology.Optimal(l, o),
	}
}

// mode is when correction starts and which processes correct.
type mode struct {
	start     broadcast.Start
	onlyRelay bool
}

func (m mode) String() string {
	if m.onlyRelay {
		return "overlapped-relay-only"
	}
	return m.start.String()
}

// The modes there are.
var (
	synchronized = mode{start: broadcast.Synchronized}
	overlapped   = mode{start: broadcast.Overlapped}
	relayOnly    = mode{start: broadcast.Overlapped, onlyRelay: true}
	starts       = []mode{synchronized, overlapped}
	modes        = []mode{synchronized, overlapped, relayOnly}
)

// corrections are all kinds of correction, as flags spell them.
var corrections = []string{
	"checked", "throttled", "delayed:0", "delayed:7",
	"opportunistic:1", "opportunistic:3", "optimized:1", "optimized:3", "safe:1", "safe:3",
	"failure-proof:0", "failure-proof:1", "failure-proof:2",
}

// goes reports whether a correction makes sense in a mode.
func goes(correction string, m mode) bool {
	switch kind(correction) {
	case "throttled", "failure-proof":
		return m == synchronized
	case "delayed":
		return m != relayOnly
	default:
		return true
	}
}

// kind is a correction without its number.
func kind(correction string) string {
	name, _, _ := strings.Cut(correction, ":")
	return name
}

// promisesLiveness reports whether a broadcast reaches every live process
// however many are dead, if the root lives.
func promisesLiveness(s *experiments.Scenario) bool {
	return s.Dissemination == "bfb" ||
		slices.Contains([]string{"checked", "throttled", "delayed", "failure-proof"}, kind(s.Correction))
}

// treeOf is a corrected tree.
func treeOf(shape topology.Shape, size protocol.Rank, l, o protocol.Time, correction string,
	m mode,
) experiments.Scenario {
	return experiments.Scenario{
		Dissemination: "tree", Shape: shape, Size: size, L: l, O: o,
		Correction: correction, Start: m.start, EarlyOnlyRelay: m.onlyRelay,
	}
}

// everything is every configuration that makes sense, by name.
func everything(size protocol.Rank, l, o protocol.Time) map[string]experiments.Scenario {
	all := make(map[string]experiments.Scenario)
	add := func(s experiments.Scenario, how string) {
		s.Size, s.L, s.O = size, l, o
		if s.Correction != "" {
			how = fmt.Sprintf("%s/%s/%s", how, s.Correction, mode{s.Start, s.EarlyOnlyRelay})
		}
		all[how] = s
	}
	corrected := func(s experiments.Scenario, how string, modes ...mode) {
		add(s, how)
		for _, c := range corrections {
			for _, m := range modes {
				if goes(c, m) {
					s.Correction, s.Start, s.EarlyOnlyRelay = c, m.start, m.onlyRelay
					add(s, how)
				}
			}
		}
	}
	for _, shape := range shapes(l, o) {
		for _, order := range []topology.Order{topology.Interleaved, topology.InOrder} {
			how := fmt.Sprintf("%s-%s", shape, order)
			corrected(experiments.Scenario{Dissemination: "tree", Shape: shape, Order: order}, how, modes...)
			add(experiments.Scenario{Dissemination: "ack", Shape: shape, Order: order}, "ack-"+how)
		}
	}
	until := 2*(2*o+l) + 1
	corrected(experiments.Scenario{Dissemination: "gossip", GossipTime: until, Drain: -1}, "gossip-drained", synchronized)
	corrected(experiments.Scenario{Dissemination: "gossip", GossipTime: until}, "gossip", synchronized)
	corrected(experiments.Scenario{Dissemination: "gossip", GossipRounds: 3}, "gossip-rounds", overlapped, relayOnly)
	add(experiments.Scenario{Dissemination: "big"}, "big")
	add(experiments.Scenario{Dissemination: "bfb"}, "bfb")
	return all
}
