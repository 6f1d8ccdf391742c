package netns

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// prefix begins the names of all namespaces made here. The number of the process
// that made them follows, so that those of a dead one can be found and removed:
// namespaces outlive the processes that make them.
const prefix = "pleachtest-"

// directory is where ip keeps the names.
const directory = "/run/netns"

// made numbers the networks of this process.
var made atomic.Int64

func newName() string { return fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), made.Add(1)) }

// leftovers returns the namespaces of processes that are no more.
func leftovers() []string {
	entries, _ := os.ReadDir(directory) // there is none before the first namespace
	var names []string
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), prefix)
		pid, _, _ := strings.Cut(rest, "-")
		if _, err := strconv.Atoi(pid); !ours || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			names = append(names, e.Name())
		}
	}
	return names
}
