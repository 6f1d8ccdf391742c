package main

import (
	"os"
	"runtime/debug"
	"time"

	"github.com/pleach-go/pleach"
)

// An agent shares its host with the programs that it is there for, and does little most of
// the time: it collects garbage earlier than a Go program usually does, and gives back what
// its start has taken, when all members have connected to each other.
const (
	agentGCPercent = 50
	settledAfter   = 10 * time.Second
)

// saveMemory collects garbage earlier, unless the environment says how (GOGC).
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(agentGCPercent)
	}
}

// giveMemoryBack does so a while after the agent has become a member.
func giveMemoryBack(*pleach.Group) { time.AfterFunc(settledAfter, debug.FreeOSMemory) }
