package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// canned answers as the agent of rank self in a group of size members would, in which some
// are suspected, slow or just gone. The clock goes on by five seconds with each status.
type canned struct {
	size, self int
	last       int // ranks in use, holes included
	name       func(rank int) string
	zones      int // of its fleet; 0: it is in none
	asked      atomic.Int64
}

// began is when the last view was installed.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newCanned(size int) *canned {
	c := &canned{size: size, self: min(3, size-1), name: func(rank int) string { return fmt.Sprintf("node-%03d", rank) }}
	for left := size; left > 0; c.last++ {
		if !hole(c.last) {
			left--
		}
	}
	return c
}

// hole reports whether there is no member at a rank below the last one.
func hole(rank int) bool { return rank%24 == 7 }

// free are ranks behind the last member.
const free = 2

// present reports whether a rank is in the view.
func (c *canned) present(rank int) bool { return rank < c.last && !hole(rank) }

func (c *canned) suspected(rank int) bool { return rank == c.size/2 || c.size > 17 && rank%130 == 33 }

func (c *canned) stalled(rank int) bool { return rank == c.last-1 || c.size > 17 && rank%110 == 20 }

// observer reports whether a member does not count for the quorum.
func (c *canned) observer(rank int) bool { return rank%5 == 4 }

func (c *canned) ranks() (ranks []int) {
	for rank := range c.last {
		if c.present(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func (c *canned) members() *api.Members {
	m := &api.Members{View: 17, Slots: c.last + free, Self: c.self, Members: []api.Member{}}
	for _, rank := range c.ranks() {
		state := api.Alive
		if c.suspected(rank) {
			state = api.Suspected
		}
		m.Members = append(m.Members, api.Member{
			MemberRef: api.MemberRef{Rank: rank, ID: c.name(rank)}, Address: fmt.Sprintf("10.0.%d.%d:7946", rank/200,
				rank%200+1),
			FailureDomain: fmt.Sprintf("rack-%d", rank%4+1), Incarnation: 1, Meta: "pleach=1.0.0 role=worker", State: state,
			Since: began.Add(-time.Hour), Observer: c.observer(rank),
		})
	}
	return m
}

func (c *canned) tree() *api.Tree {
	tree, err := topology.New(topology.Shape{}, topology.Interleaved, protocol.Rank(c.last+free), protocol.Rank(c.self))
	if err != nil {
		panic(err)
	}
	t := &api.Tree{View: 17, Root: c.self, Edges: []api.TreeEdge{}}
	for _, rank := range c.ranks() {
		if rank == c.self {
			continue
		}
		parent, _ := tree.Parent(protocol.Rank(rank))
		for p := int(parent); p != c.self && (!c.present(p) || c.suspected(p) || c.stalled(p)); p = int(parent) {
			parent, _ = tree.Parent(parent)
		}
		t.Edges = append(t.Edges, api.TreeEdge{Rank: rank, Parent: int(parent), Avoided: c.suspected(rank) ||
			c.stalled(rank)})
	}
	return t
}

// warnings are those of an agent whose certificate expires, in a small group.
func (c *canned) warnings() []api.Warning {
	if c.size > 5 {
		return []api.Warning{}
	}
	return []api.Warning{{
		Kind: api.WarnCertificate, Text: "the certificate of this agent expires at 2026-03-02 12:00:00 UTC, in 24h0m0s",
		Since: began,
		Next:  "replace /etc/pleach/agent.pem and /etc/pleach/agent.key: the agent takes the new ones within a second",
	}}
}

func (c *canned) status() *api.Status {
	tick := c.asked.Add(1)
	now := began.Add(time.Duration(tick) * 5 * time.Second)
	ranks := c.ranks()
	s := &api.Status{Status: pleach.Status{
		Time: now, Group: "orders", Rank: c.self, ID: c.name(c.self), View: 17, Members: len(ranks),
		Suspects: []pleach.Suspect{}, Peers: []pleach.PeerStatus{}, History: c.history(len(ranks)),
	}, Agent: api.AgentStatus{Version: "1.0.0", Began: began.Add(-time.Hour), Warnings: c.warnings()}}
	for _, rank := range ranks {
		if c.suspected(rank) {
			s.Suspects = append(s.Suspects, pleach.Suspect{
				Rank: rank, ID: c.name(rank), Since: now.Add(-3 * time.Second),
				By: []int{c.self}, Cause: "no heartbeat for 2.1 s",
			})
		}
		if rank == c.self {
			continue
		}
		p := pleach.PeerStatus{
			Rank: rank, ID: c.name(rank), Connected: true,
			LastHeard: now.Add(-time.Duration(rank%9) * 70 * time.Millisecond),
		}
		if c.stalled(rank) {
			p.Stalled, p.Lag, p.QueuedBytes = true, uint64(500+300*math.Sin(float64(tick)/4+float64(rank))), 3<<20
		}
		s.Peers = append(s.Peers, p)
	}
	if c.zones > 0 {
		s.Agent.Zone = zoneName(0)
	}
	s.Quorum = c.quorum(now)
	s.Queues = pleach.Queues{InboxBytes: 12 << 10, OutboxBytes: 3 << 20, InFlightBytes: 256 << 10}
	s.Stats = pleach.Stats{
		Views: 17, Delivered: 2250 * uint64(tick), Broadcast: 300 * uint64(tick),
		DeliveredBytes: wave(tick, 5<<20, 5), BroadcastBytes: wave(tick, 800<<10, 3),
	}
	s.Stats.BytesSent, s.Stats.BytesReceived = 20<<20*uint64(tick), 8<<20*uint64(tick)
	return s
}

// quorum is that of a group whose arbiter has granted the present view.
func (c *canned) quorum(now time.Time) pleach.Quorum {
	q := pleach.Quorum{OK: true, Arbiter: pleach.ArbiterStatus{
		State: pleach.ArbiterGranted, View: 17, Since: began, LastCall: now,
	}}
	for _, rank := range c.ranks() {
		if c.observer(rank) {
			continue
		}
		q.Voters++
		if !c.suspected(rank) {
			q.Reachable++
		}
	}
	q.Needed = q.Voters/2 + 1
	return q
}

func zoneName(i int) string { return fmt.Sprintf("zone-%02d", i) }

// fleet has zones of as many members each, of which the last one is cut off, and the second one
// is late.
func (c *canned) fleet() *api.Fleet {
	f := &api.Fleet{Name: "orders", Zone: zoneName(0), Time: began}
	cut := c.zones - 1
	for i := range c.zones {
		z := api.Zone{
			Zone: zoneName(i), Members: c.size, View: 17, Healthy: i%7 != 4, Seconds: float64(i%5) * 0.9,
			Delegates: []api.Delegate{}, Links: []fleet.Link{},
		}
		if i == cut {
			z.Error, z.Seconds = "no delegate of it is reachable", 42
			f.Zones = append(f.Zones, z)
			continue
		}
		for d := range 3 {
			z.Delegates = append(z.Delegates,
				api.Delegate{MemberRef: api.MemberRef{Rank: d, ID: fmt.Sprintf("%s-%03d", zoneName(i), d)}, Lead: d == i%3})
		}
		for j := range c.zones {
			l := fleet.Link{
				Zone: zoneName(j), Connected: j != cut, Lag: uint64(i * j % 9),
				Heard: time.Duration(i+j) * 31 * time.Millisecond,
			}
			if j == cut {
				l.Lag, l.Heard = 4211, 42*time.Second
			} else if j == 1 {
				l.Lag = 1800
			}
			if i != j {
				z.Links = append(z.Links, l)
			}
		}
		f.Zones = append(f.Zones, z)
	}
	return f
}

// wave is a counter that grows by about step each time, more and less in turn.
func wave(tick int64, step, period float64) uint64 {
	sum := 0.0
	for i := range tick {
		sum += step * (1 + math.Sin(float64(i)/period)/2 + math.Sin(float64(i*i))/8)
	}
	return uint64(sum)
}

// history has views with all causes: the last one is as the members are.
func (c *canned) history(size int) (views []pleach.ViewChange) {
	change := func(rank int, cause pleach.Cause, detail string, by ...int) pleach.MemberChange {
		return pleach.MemberChange{Rank: rank, ID: c.name(rank), Cause: cause, By: by, Detail: detail}
	}
	gone := func(i int) pleach.MemberChange { // of ranks that are holes now
		m := change(c.last+i%free, pleach.CauseSuspected, "its process is gone", 1)
		m.ID = fmt.Sprintf("old-%03d", i)
		if i == 17 {
			m.Cause, m.By, m.Detail = pleach.CauseLeft, nil, ""
		}
		return m
	}
	for i := 1; i <= 17; i++ {
		v := pleach.ViewChange{
			Number: uint64(i), Time: began.Add(time.Duration(i-17) * 40 * time.Second),
			Members: size - (17-i)%3, Changes: []pleach.MemberChange{},
		}
		switch {
		case i >= 16:
			v.Changes = append(v.Changes, gone(i))
		case i%3 == 0:
			v.Changes = append(v.Changes, change(i%c.size, pleach.CauseJoined, ""),
				change((i+1)%c.size, pleach.CauseChanged, ""))
		case i%3 == 1 && i > 1:
			v.Changes, v.Omitted = append(v.Changes, change((i+2)%c.size, pleach.CauseJoined, "")), c.size/20
		case i > 1:
			v.Changes = append(v.Changes, change(i%c.size, pleach.CauseReplaced, "by a process at 10.0.0.9:7946"))
		}
		views = append(views, v)
	}
	return views
}

// server serves the page with the answers. The page has a script more, which looks for what
// is wrong with it.
func (c *canned) server(t *testing.T) http.Handler {
	t.Helper()
	script, err := os.ReadFile("testdata/check.js")
	if err != nil {
		t.Fatal(err)
	}
	index, err := files.ReadFile("static/index.html")
	if err != nil {
		t.Fatal(err)
	}
	page := Handler()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case Path:
			page.ServeHTTP(&headerOnly{ResponseWriter: w}, r)
			_, _ = w.Write(bytes.Replace(index, []byte("<body>"), []byte(`<script type="module" src="check.js"></script><body>`),
				1))
		case Path + "check.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(script)
		default:
			page.ServeHTTP(w, r)
		}
	})
	answer(mux, "members", func() any { return c.members() })
	answer(mux, "tree", func() any { return c.tree() })
	answer(mux, "status", func() any { return c.status() })
	answer(mux, "fleet", func() any { return c.fleet() })
	answer(mux, "rollouts", func() any { return c.rollouts() })
	return mux
}

// rollouts are one that has failed, and one under way.
func (c *canned) rollouts() *api.RolloutList {
	members := []api.RolloutMember{{ID: c.name(0), Wave: 1, State: "reverted", Has: true}, {ID: c.name(1), Wave: 2}}
	return &api.RolloutList{Rollouts: []api.Rollout{
		{
			ID: "abc", Name: c.name(0), Phase: "reverted", Ended: true, Wave: 1, Waves: 2, Members: members,
			Reason: "wave 1 of 2: " + c.name(0) + ": not ready",
		},
		{ID: "def", Name: "config", Phase: "holding", Paused: true, Wave: 1, Waves: 2, Members: members},
	}}
}

// headerOnly keeps the headers of an answer, without its length and body.
type headerOnly struct{ http.ResponseWriter }

func (h *headerOnly) WriteHeader(int) { h.Header().Del("Content-Length") }

func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }

func answer(mux *http.ServeMux, route string, value func() any) {
	mux.HandleFunc("GET /v1/"+route, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value())
	})
}
