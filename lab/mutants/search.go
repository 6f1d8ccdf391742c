//go:build unix

package main

import (
	"fmt"
	"strings"
)

// defaultPackages are those whose bugs hurt a group most: its protocols, the life of a member,
// and what carries their bytes.
var defaultPackages = []string{
	"internal/machine/lifecycle", "internal/machine/control", "internal/machine/membership", "internal/machine/member",
	"internal/machine/stream",
	"internal/machine/founding", "internal/machine/relay", "internal/machine/backbone", "internal/collective/engine",
	"internal/machine/p2p",
	"internal/machine/unicast",
	"internal/machine/heartbeat", "internal/machine/detection",
	"broadcast", "topology", "internal/base/wire", "internal/driver/tcp",
	"internal/services/sequencer", "internal/services/session", "internal/services/leases", "internal/services/handoff",
	"internal/services/rollouts",
}

// users are packages whose tests look for a bug that neither the package's own tests nor the
// simulator find.
var users = map[string][]string{
	"internal/machine/relay":     {"./fleet"},
	"internal/machine/backbone":  {"./fleet"},
	"internal/collective/engine": {"./collective"},
	"broadcast":                  {"./internal/machine/stream", "./logp"},
	"topology":                   {"./broadcast", "./internal/machine/stream"},
	"internal/base/wire":         {"./internal/driver/tcp", "./internal/machine/membership"},
	"internal/machine/control":   {"./internal/machine/lifecycle"},
	"internal/driver/tcp":        {"."},
}

// searches are the ways to look for bugs in the package of a directory.
var searches = map[string]func(directory string) []finder{
	"tests": func(directory string) []finder {
		found := own(directory)
		if simulated(directory) {
			found = append(found, seeds(directory, 2100))
		}
		if of := users[directory]; of != nil {
			found = append(found, finder{name: strings.Join(of, " "), packages: of, short: true})
		}
		return found
	},
	"own":        own,
	"simulation": func(directory string) []finder { return []finder{seeds(directory, 1000)} },
}

// own are the tests of the package alone.
func own(directory string) []finder {
	return []finder{{name: "own tests", packages: []string{"./" + directory}, short: true}}
}

// simulated reports whether the simulator runs the code of a directory.
func simulated(directory string) bool {
	return directory != "internal/driver/tcp" && directory != "internal/collective/engine"
}

// plans are the kinds of seeds that the simulator of groups has.
const plans = 7

// seeds are the first seeds of the simulator, as many of each kind. All of them run all code, so
// that nothing is measured before.
func seeds(directory string, count int) finder {
	of, each := "./internal/test/simulation", count/plans
	if strings.HasPrefix(directory, "fleet/") {
		of, each = "./internal/test/fleetsimulation", count
	}
	return finder{
		name: "seeds", packages: []string{of}, run: "UnderSeeds",
		environment: []string{fmt.Sprint("PLEACH_SEEDS=", each)}, unmeasured: true,
	}
}
