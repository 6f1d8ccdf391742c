package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const collectorAddress = controlAddress + ":9999"

// serveCollector prints all records that arrive from pods.
func serveCollector() error {
	listener, err := net.Listen("tcp", collectorAddress)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			for lines := bufio.NewScanner(c); lines.Scan(); {
				mu.Lock()
				fmt.Fprintln(os.Stdout, lines.Text())
				mu.Unlock()
			}
		}()
	}
}

// load reads the records of a time.
func (c *cluster) load(from, to time.Time) (all []record, err error) {
	f, err := os.Open(c.path("collect.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Time >= from.UnixNano() && r.Time <= to.UnixNano() {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b record) int { return cmp.Compare(a.Time, b.Time) })
	return all, nil
}

// outcome is what users of the group saw in a scenario.
type outcome struct {
	Name       string  `json:"name"`
	Seconds    float64 `json:"seconds"` // until all pods were ready again
	Sent       int     `json:"sent"`    // messages with a receipt
	Deliveries int     `json:"deliveries"`
	Lost       int     `json:"lost"`
	Duplicated int     `json:"duplicated"`
	Missed     int     `json:"missed"`    // times that a subscriber got a gap event
	NoQuorum   float64 `json:"no_quorum"` // longest time in which no agent had a quorum, in seconds
	LostKeys   int     `json:"lost_keys"`
	FallenLock int     `json:"fallen_tokens"`
	Restarts   int     `json:"restarts"` // of containers, by Kubernetes
	Error      string  `json:"error,omitempty"`
}

// settled is how long a process has to live after a receipt for its message to count as lost.
const settled = 5 * time.Second

// judge counts.
func judge(o *outcome, all []record) {
	type process struct {
		pod              string
		subscribed, last int64
		got              map[string]int
		missed           []int64
	}
	processes := make(map[string]*process)
	sent := make(map[string]int64)
	var token uint64
	for _, r := range all {
		name := fmt.Sprint(r.Pod, "/", r.Process)
		p := processes[name]
		if p == nil {
			p = &process{pod: r.Pod, got: make(map[string]int)}
			processes[name] = p
		}
		p.last = r.Time
		switch r.Kind {
		case recordSubscribed:
			if p.subscribed == 0 {
				p.subscribed = r.Time
			}
		case recordSent:
			sent[r.Key] = r.Time
		case recordReceived:
			p.got[r.Key]++
			o.Deliveries++
			if p.got[r.Key] == 2 {
				o.Duplicated++
			}
		case recordMissed:
			o.Missed++
			p.missed = append(p.missed, r.Time)
		case recordLostKey:
			o.LostKeys++
		case recordToken:
			if r.N <= token {
				o.FallenLock++
			}
			token = max(token, r.N)
		}
	}
	for _, r := range all {
		if r.Kind != recordStable {
			continue
		}
		o.Sent++
		for _, p := range processes {
			if slices.Contains(r.Members, p.pod) && p.subscribed != 0 && p.subscribed < sent[r.Key] &&
				p.last > r.Time+int64(settled) && p.got[r.Key] == 0 && len(p.missed) == 0 {
				o.Lost++
			}
		}
	}
	o.NoQuorum = longestWithoutQuorum(all)
}

// longestWithoutQuorum returns the longest time between two moments at which an agent had a quorum.
func longestWithoutQuorum(all []record) float64 {
	var last, longest int64
	for _, r := range all {
		if r.Kind != recordQuorum || r.N == 0 {
			continue
		}
		if last != 0 {
			longest = max(longest, r.Time-last)
		}
		last = r.Time
	}
	return float64(longest) / 1e9
}

// table is the outcomes in Markdown.
func table(all []outcome) string {
	var b strings.Builder
	b.WriteString("| scenario | ready after | messages | lost | duplicated | gap events | longest without quorum | keys lost |" +
		" tokens fallen | restarts |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range all {
		name := o.Name
		if o.Error != "" {
			name += ": " + o.Error
		}
		fmt.Fprintf(&b, "| %s | %.1f s | %d | %d | %d | %d | %.1f s | %d | %d | %d |\n", name, o.Seconds, o.Sent, o.Lost,
			o.Duplicated, o.Missed, o.NoQuorum, o.LostKeys, o.FallenLock, o.Restarts)
	}
	return b.String()
}
