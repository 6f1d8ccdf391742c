// Command measure runs the commands whose figures README and docs quote, and writes the
// records and the pages again:
//
//	go run ./lab/figures/measure            # everything: hours
//	go run ./lab/figures/measure silent     # a part
//	go run ./lab/figures/measure silent.peers
//	go run ./lab/figures/measure pages      # only the pages, from the records
//
// A part is measured on an otherwise idle machine, from a tree without changes: the record
// names the commit.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/lab/figures"
)

// measurement is what is run together: PART.TABLE, and tables that follow from it.
type measurement struct {
	name string
	run  func(*lab) []figures.Table
}

var measurements = []measurement{
	{"simulator.sparse", simulatorSparse},
	{"simulator.events", simulatorEvents},
	{"silent.sizes", silentSizes},
	{"silent.rate", silentRate},
	{"silent.peers", silentPeers},
	{"broadcast.latency", broadcastLatency},
	{"broadcast.rate", broadcastRate},
	{"broadcast.dead", broadcastDead},
	{"peers.32", peers32},
	{"peers.128", peers128},
	{"peers.agents", agentsBesideSerf},
	{"stabilization.kill", viewsAfterKill},
	{"stabilization.convergence", viewsBesideGossip},
	{"collectives.openmpi", collectivesBesideMPI},
	{"bindings.calls", bindingsCalls},
	{"bindings.training", bindingsTraining},
	{"sort.gnu", sortBesideGNU},
	{"sql.times", sqlTimes},
	{"sql.deaths", sqlDeaths},
	{"scale.members", scaleMembers},
	{"scale.peers", scalePeers},
	{"order.times", orderTimes},
	{"order.leases", orderLeases},
	{"shards.move", shardsMove},
	{"fleet.quiet", fleetQuiet},
	{"fleet.trouble", fleetTrouble},
	{"fleet.full", fleetFull},
	{"ulfm.shrink", viewsBesideULFM},
	{"kubernetes.scenarios", kubernetesScenarios},
	{"kubernetes.pair", kubernetesPair},
	{"mutants.tests", mutantsTests},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	for _, name := range names {
		if name != "pages" && !slices.ContainsFunc(measurements, func(m measurement) bool { return m.of(name) }) {
			return fmt.Errorf("there is no part %s: choose of %s", name, parts())
		}
	}
	for _, m := range measurements {
		if len(names) == 0 || slices.ContainsFunc(names, m.of) {
			if err := m.record(); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	return figures.Update(".")
}

// of reports whether a name is that of the measurement, or of its part.
func (m measurement) of(name string) bool { return m.name == name || m.part() == name }

func (m measurement) part() string {
	part, _, _ := strings.Cut(m.name, ".")
	return part
}

// record measures, and replaces the tables in the part's record.
func (m measurement) record() error {
	r, err := figures.Read(os.DirFS("."), m.part())
	if err != nil {
		return err
	}
	l := lab{}
	l.clean()
	if l.err != nil {
		return l.err
	}
	tables := m.run(&l)
	if l.err == nil {
		l.describe(tables)
	}
	if l.err != nil {
		return l.err
	}
	r.Put(tables...)
	return r.Write(".", m.part())
}

func parts() string {
	var names []string
	for _, m := range measurements {
		if !slices.Contains(names, m.part()) {
			names = append(names, m.part())
		}
		names = append(names, m.name)
	}
	return strings.Join(append(names, "pages"), ", ")
}
