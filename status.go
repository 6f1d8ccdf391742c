package pleach

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Status is what a member knows of its group's health at one moment. It is for
// dashboards, health checks and people, as JSON too; [Group.Views] and [Group.Err] are for
// programs.
type Status struct {
	// Time is when the status was taken, by this host's clock, as all times in it.
	Time time.Time `json:"time"`
	// Group, Rank and ID name this member.
	Group string `json:"group"`
	Rank  int    `json:"rank"`
	ID    string `json:"id"`
	// View is the number of the current view, and Members counts its members.
	View    uint64 `json:"view"`
	Members int    `json:"members"`
	// Version is the protocol version of the group, and NewestVersion the highest that any
	// member speaks. They differ during a rolling upgrade: see [RaiseVersion].
	Version       int    `json:"version"`
	NewestVersion int    `json:"newest_version"`
	Quorum        Quorum `json:"quorum"`
	// Observer says that this member does not count for the quorum.
	Observer bool `json:"observer,omitempty"`
	// Suspects are the members of the view that cannot be reached, in order of rank.
	// A view without them follows, unless the quorum is lost.
	Suspects []Suspect `json:"suspects"`
	// Peers are the other members of the view, in order of rank.
	Peers []PeerStatus `json:"peers"`
	// History has the last 64 views, the current one last: when and why they came. It
	// begins with the view in which this process became a member.
	History []ViewChange `json:"history"`
	Queues  Queues       `json:"queues"`
	// Stuck are the queues in which broadcasts have waited for this process's program for
	// Config.Limits.SlowTimeout without its processing any, and OnMessage if it has not returned
	// for that long.
	Stuck []StuckConsumer `json:"stuck,omitempty"`
	Stats Stats           `json:"stats"`
	// LastError is the last error of this process itself that kept it from others,
	// such as running out of file descriptors, or from voting, such as a full or slow disk,
	// and LastErrorAt when it happened. It is empty if there was none. It is no evidence against other members.
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// CertificateExpires is when this process's certificate does. It is zero without TLS,
	// or if GetCertificate has it.
	CertificateExpires time.Time `json:"certificate_expires,omitzero"`
	// Ended is why this process is no longer a member, as [Group.Err] says. It is empty
	// while the process is a member.
	Ended string `json:"ended,omitempty"`
}

// String returns the status on one line, as in "view 7: no quorum: 2 of 5 reachable, 3
// needed".
func (s Status) String() string {
	quorum := "quorum"
	if !s.Quorum.OK {
		quorum = "no quorum"
	}
	voters := ""
	if s.Quorum.Voters < s.Members {
		voters = " voters"
	}
	return fmt.Sprintf("view %d: %s: %d of %d%s reachable, %d needed", s.View, quorum, s.Quorum.Reachable,
		s.Quorum.Voters, voters, s.Quorum.Needed)
}

// Quorum tells whether enough members are reachable to decide the next view.
type Quorum struct {
	// Voters are the members that count: all but the observers.
	Voters int `json:"voters"`
	// Of the voters, Reachable are not suspected, this member included if it votes, and Needed are
	// enough.
	Reachable int  `json:"reachable"`
	Needed    int  `json:"needed"`
	OK        bool `json:"ok"`
	// Arbiter is the last answer of the group's arbiter to this process.
	Arbiter ArbiterStatus `json:"arbiter"`
}

// Suspect is a member that cannot be reached.
type Suspect struct {
	Rank  int       `json:"rank"`
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
	// By are the ranks of the members whose detectors suspect it, as far as this one
	// knows: members report to the coordinator only. It is empty if the member only does
	// not answer this one.
	By []int `json:"by,omitempty"`
	// Cause is what a detector of this member has found, or says that another member has
	// reported it.
	Cause string `json:"cause"`
}

// othersSuspect is the cause of suspicions that do not come from an own detector.
const othersSuspect = "another member suspects it, or it does not answer during a view change"

// PeerStatus is what a member knows of another one.
type PeerStatus struct {
	Rank int    `json:"rank"`
	ID   string `json:"id"`
	// Observer says that it does not count for the quorum.
	Observer bool `json:"observer,omitempty"`
	// Since is when this member has seen the other one join. It is zero if that was
	// before its own time.
	Since time.Time `json:"since,omitzero"`
	// Connected says that there is a connection. A member of a large group has few.
	Connected bool `json:"connected"`
	// LastHeard is when the last frame of the other one arrived. It is zero if none did.
	LastHeard time.Time `json:"last_heard,omitzero"`
	// QueuedBytes wait in this process to be sent to the other one. UnreadBytes are those
	// of [Group.Send] that its program has not received yet.
	QueuedBytes int    `json:"queued_bytes"`
	UnreadBytes uint64 `json:"unread_bytes"`
	// Lag is how many segments of this member's broadcasts are late at the other one, or at
	// one behind it in the tree: they were sent at least a second before it last answered, or
	// has left a question unanswered, and it did not have them. It is known only of members
	// that this one feeds.
	Lag uint64 `json:"lag"`
	// Missing is how many segments of the other one's broadcasts this member lacks.
	Missing uint64 `json:"missing"`
	// Stalled says that the other one has not answered the polls of flow control for a
	// second or more. Broadcasts go around it.
	Stalled bool `json:"stalled"`
	Traffic
}

// Traffic counts frames of all protocols, heartbeats included, and their bytes.
type Traffic struct {
	FramesSent     uint64 `json:"frames_sent"`
	BytesSent      uint64 `json:"bytes_sent"`
	FramesReceived uint64 `json:"frames_received"`
	BytesReceived  uint64 `json:"bytes_received"`
}

// Queues is how much waits in a member.
type Queues struct {
	// InboxMessages, of InboxBytes, wait for the program to receive them.
	InboxMessages int `json:"inbox_messages"`
	InboxBytes    int `json:"inbox_bytes"`
	// OutboxBytes wait to be sent. InFlightBytes are sent, and some member may not have
	// them yet.
	OutboxBytes   int `json:"outbox_bytes"`
	InFlightBytes int `json:"in_flight_bytes"`
}

// Status returns a snapshot. A static group suspects no member, and has its quorum
// always. After the end of the membership, Status tells of its last view only.
func (g *Group) Status() Status { return g.session().status() }

func (g *session) status() Status {
	self := g.Self()
	s := Status{
		Group: g.config.Group, Rank: self.Rank, ID: self.ID, Observer: self.Observer,
		Suspects: []Suspect{}, Peers: []PeerStatus{}, History: []ViewChange{},
	}
	err := g.node.Do(func(now protocol.Time) {
		s.Time = time.Now()
		if g.machine.Static() {
			s.Quorum = Quorum{Reachable: g.Size(), OK: true}
		} else {
			g.faults.updateSuspects()
			s.Quorum.Reachable, s.Quorum.Needed, s.Quorum.OK = g.machine.Quorum()
			s.Suspects = g.faults.suspectList()
		}
		s.View, s.Members, s.Quorum.Voters = g.view.Load().Number, g.Size(), g.view.Load().Voters()
		s.Version, s.NewestVersion = versionsOf(g.view.Load())
		s.Peers = g.peerList(now)
		s.History = append(s.History, g.faults.history...)
		s.Queues, s.Stats = Queues(g.stream.Queues()), g.stats()
		s.Stuck = g.consumers.stuckConsumers(now)
	})
	if err != nil {
		s.Time, s.View, s.Members = time.Now(), g.view.Load().Number, g.Size()
		s.Quorum.Voters = g.view.Load().Voters()
		s.Stats.Propagation = propagationOf(&stream.Propagation{})
	}
	if g.faults.localError != nil {
		if at, err := g.faults.localError(); err != nil {
			s.LastErrorAt, s.LastError = at, err.Error()
		}
	}
	if at, err := g.vote.LastFailure(); err != nil && at.After(s.LastErrorAt) {
		s.LastErrorAt, s.LastError = at, err.Error()
	}
	s.CertificateExpires = admission.Expiry(g.config.Security.TLS)
	s.Quorum.Arbiter = g.faults.arbiter.status()
	if err := g.Err(); err != nil {
		s.Ended = err.Error()
	}
	return s
}

// suspectList returns the suspects, within node.Do.
func (f *faults) suspectList() []Suspect {
	ranks := f.machine.Unreachable()
	list := make([]Suspect, 0, len(ranks))
	if len(ranks) == 0 {
		return list
	}
	accusers := f.machine.Accusers()
	for _, rank := range ranks {
		s := f.suspects[rank]
		for _, by := range accusers[rank] {
			s.By = append(s.By, int(by))
		}
		slices.Sort(s.By)
		list = append(list, s)
	}
	return list
}

// peerList returns the other members, within node.Do.
func (g *session) peerList(now protocol.Time) []PeerStatus {
	members := g.view.Load().Members
	states := g.stream.PeerStates(now)
	list := make([]PeerStatus, 0, max(members.Len()-1, 0))
	for _, m := range members.All() {
		if m.Rank != g.self.Rank {
			list = append(list, g.peerStatus(m, states[m.Rank]))
		}
	}
	return list
}

// peerStatus returns what is known of another member.
func (g *session) peerStatus(m *membership.Member, s stream.PeerState) PeerStatus {
	n := g.node.Peer(m.Rank)
	p := PeerStatus{
		Rank: int(m.Rank), ID: m.Identity, Observer: m.Observer, Connected: n.Connected, Traffic: Traffic(n.Traffic),
		QueuedBytes: s.Backlog, Lag: s.Lag, Missing: s.Missing, Stalled: s.Stalled,
	}
	if n.Heard > 0 {
		p.LastHeard = g.node.Wall(n.Heard)
	}
	if g.network.queued != nil {
		p.QueuedBytes += g.network.queued(m.Rank)
	}
	if !g.machine.Static() {
		p.Since = g.candidates.admittedAt(m)
		p.UnreadBytes = g.direct.channel.Unread(m.Rank)
	}
	return p
}

// noteReport records a report that counts, within node.Do.
func (f *faults) noteReport(r member.Report, about membership.Member) {
	if !r.Alive {
		s := Suspect{Rank: int(r.Rank), ID: about.Identity, Since: time.Now(), Cause: causeText(r.Cause)}
		f.log.Info("suspected", "peer", r.Rank, "id", about.Identity, "cause", s.Cause)
		if known, is := f.suspects[r.Rank]; is && known.ID == s.ID {
			s.Since = known.Since
			if errors.Is(r.Cause, detect.ErrSilent) && known.Cause != othersSuspect {
				s.Cause = known.Cause // of course it is silent, and this says why
			}
		}
		f.suspects[r.Rank] = s
	} else if _, known := f.suspects[r.Rank]; known {
		f.log.Info("no longer suspected", "peer", r.Rank, "id", about.Identity)
	}
}

// causeText is the cause of a report for people who know which member it is about.
func causeText(cause error) string {
	s := (*detect.Suspicion)(nil)
	switch {
	case !errors.As(cause, &s):
		return fmt.Sprint(cause)
	case s.Err == nil:
		return s.Why.Error()
	}
	return fmt.Sprintf("%v: %v", s.Why, s.Err)
}

// updateSuspects records since when members cannot be reached, within node.Do.
func (f *faults) updateSuspects() {
	ranks := f.machine.Unreachable()
	for rank := range f.suspects {
		if _, still := slices.BinarySearch(ranks, rank); !still {
			delete(f.suspects, rank)
		}
	}
	view := f.machine.View()
	for _, rank := range ranks {
		m, _ := view.Member(rank)
		if s, known := f.suspects[rank]; !known || s.ID != m.Identity {
			f.suspects[rank] = Suspect{Rank: int(rank), ID: m.Identity, Since: time.Now(), Cause: othersSuspect}
		}
	}
}

// Stats counts what a member has done since it began.
type Stats struct {
	// Broadcast and Delivered count messages, and BroadcastBytes and DeliveredBytes the
	// bytes of them.
	Broadcast      uint64 `json:"broadcast"`
	Delivered      uint64 `json:"delivered"`
	BroadcastBytes uint64 `json:"broadcast_bytes"`
	DeliveredBytes uint64 `json:"delivered_bytes"`
	// Relayed, Grafted and Repaired count segments sent along the tree, to
	// members whose parent is down, and on request.
	Relayed  uint64 `json:"relayed"`
	Grafted  uint64 `json:"grafted"`
	Repaired uint64 `json:"repaired"`
	// Offers and Requests count correction messages and requests for repair.
	Offers   uint64 `json:"offers"`
	Requests uint64 `json:"requests"`
	// Duplicates, Early, Lost and Refused count segments received twice, by
	// correction before the tree, given up, and not taken because the inbox was
	// full.
	Duplicates uint64 `json:"duplicates"`
	Early      uint64 `json:"early"`
	Lost       uint64 `json:"lost"`
	Refused    uint64 `json:"refused"`
	// Views counts the views that this member has installed since it became one.
	Views uint64 `json:"views"`
	// CorrectionDelay is how long delayed correction waits at present.
	CorrectionDelay time.Duration `json:"correction_delay_ns"`
	Propagation     Propagation   `json:"propagation"`
	// Traffic counts all frames.
	Traffic
}

// Stats returns counters of this member.
func (g *Group) Stats() (stats Stats) {
	s := g.session()
	_ = s.node.Do(func(protocol.Time) { stats = s.stats() })
	return stats
}

// stats returns the counters, within node.Do.
func (g *session) stats() Stats {
	s := g.stream.Stats()
	return Stats{
		Broadcast: s.Broadcast, Delivered: s.Delivered, BroadcastBytes: s.BroadcastBytes, DeliveredBytes: s.DeliveredBytes,
		Relayed: s.Relayed, Grafted: s.Grafted, Repaired: s.Repaired, Offers: s.Offers, Requests: s.Requests,
		Duplicates: s.Duplicates, Early: s.Early, Lost: s.Lost, Refused: s.Refused, Views: g.machine.ViewCount(),
		CorrectionDelay: time.Duration(s.Delay), Propagation: propagationOf(&s.Propagation),
		Traffic: Traffic(g.node.Traffic()),
	}
}

// Propagation is the distribution of how long broadcasts of this member took to reach all
// others: from when one was accepted until its receipt ([Group.WaitStable]) was complete. It is
// measured with the acknowledgments of receipts that the program asks for, of one broadcast at a
// time. A receipt that is asked for long after the broadcast does not count.
type Propagation struct {
	Count uint64        `json:"count"`
	Sum   time.Duration `json:"sum_ns"`
	Last  time.Duration `json:"last_ns"`
	Max   time.Duration `json:"max_ns"`
	// Buckets count the delays up to a bound, in ascending order of bounds.
	Buckets [16]DelayBucket `json:"buckets"`
}

// DelayBucket counts the delays of at most UpTo, with those of the buckets before.
type DelayBucket struct {
	UpTo  time.Duration `json:"up_to_ns"`
	Count uint64        `json:"count"`
}

func propagationOf(p *stream.Propagation) Propagation {
	q := Propagation{
		Count: p.Count, Sum: time.Duration(p.Sum), Last: time.Duration(p.Last), Max: time.Duration(p.Max),
	}
	upTo := uint64(0)
	for i, bound := range stream.PropagationBounds() {
		upTo += p.Buckets[i]
		q.Buckets[i] = DelayBucket{time.Duration(bound), upTo}
	}
	return q
}
