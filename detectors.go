package pleach

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// makeDetectors makes the detectors: one that watches connections, the heartbeats', and
// those of the config.
func (g *session) makeDetectors(s *initialState) {
	g.silent = detect.NewTracker()
	g.connections = detect.NewConnections(detect.ConnectionsConfig{
		StartTimeout: g.config.StartTimeout, Listening: s.inherited, Dial: g.config.Dial,
	})
	g.detector = detect.All(append([]detect.Detector{g.connections, g.silent}, g.config.Detectors...)...)
	if d, ok := g.detector.(detect.MemberAware); ok {
		d.SetMember(detect.Member{
			Rank: g.self.Rank, Incarnation: g.self.Incarnation, Address: g.self.Address, Group: g.config.Group,
			Key: detectorKey(&g.config),
		})
	}
}

// detectorKey returns the key of detectors: who learns it has not learned the secret.
func detectorKey(c *Config) []byte {
	if len(c.Secret) == 0 {
		return nil
	}
	key, err := hkdf.Key(sha256.New, c.Secret, nil, "pleach detectors of "+c.Group, sha256.Size)
	if err != nil { // of a length that there is not
		panic(err)
	}
	return key
}

// startWatching starts the detectors.
func (g *session) startWatching(v *membership.View) error {
	if err := g.detector.Start(g.handleReport); err != nil {
		return fmt.Errorf("detector: %w", err)
	}
	g.watch(v)
	return nil
}

// distantProbeDelay is how long a member that loses its connection to another waits
// before it probes it, if other members are closer to that one. It is longer than a
// view change takes.
const distantProbeDelay = 50 * time.Millisecond

// watch has the detectors watch the members of a view.
func (g *session) watch(v *membership.View) {
	self, _ := v.Members.Index(g.self.Rank)
	g.detector.Watch(&peers{v.Members, self})
}

// peers are the members of a view as detectors see them. They copy none: there may be many,
// and detectors ask about a few.
type peers struct {
	members membership.Members
	self    int // the index of this member, which is none of its peers
}

// Find implements [detect.Peers].
func (p *peers) Find(rank protocol.Rank) (detect.Peer, bool) {
	i, ok := p.members.Index(rank)
	if !ok || i == p.self {
		return detect.Peer{}, false
	}
	return p.peer(i), true
}

// Since implements [detect.Peers].
func (p *peers) Since(before detect.Peers) iter.Seq[detect.Peer] {
	var known membership.Members
	if b, ok := before.(*peers); ok {
		known = b.members
	}
	return func(yield func(detect.Peer) bool) {
		for m := range p.members.Since(known) {
			if i, _ := p.members.Index(m.Rank); i != p.self && known.Find(m.Rank) == nil && !yield(p.peer(i)) {
				return
			}
		}
	}
}

// peer returns the member with an index as a peer. The coordinator, its successor and the
// ring neighbors are connected to a member anyway: they probe it at once when the
// connection breaks, and the others leave it to them at first.
func (p *peers) peer(i int) detect.Peer {
	m := p.members.At(i)
	peer := detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: m.Address}
	if distance := max(i-p.self, p.self-i); p.self > 1 && distance > 1 && distance < p.members.Len()-1 {
		peer.Pause = distantProbeDelay
	}
	if m.Nonce == 0 {
		peer.Incarnation = 0 // which process it is, is known when it connects
	}
	return peer
}

// heartbeatTimes is how this member exchanges heartbeats.
func heartbeatTimes(c *Config) heartbeat.Config {
	return heartbeat.Times(protocol.Time(c.HeartbeatInterval), protocol.Time(c.SuspicionTimeout), !c.AllowMinority)
}

// handleSilence takes a report of the heartbeats, within node.Do.
func (g *session) handleSilence(r protocol.Rank, silent bool) {
	switch peer, ok := g.silent.Watched(r); {
	case ok && silent:
		g.silent.Suspect(peer, detect.ErrSilent, nil)
	case ok:
		g.silent.Trust(peer)
	}
}

// handleReport passes a detector's report to the member.
func (g *session) handleReport(r detect.Report) {
	_ = g.node.Do(func(now protocol.Time) {
		g.inputs.Report(now, member.Report{
			Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Silent: errors.Is(r.Cause, detect.ErrSilent), Cause: r.Cause,
		})
	})
}

// noteReport records a report that counts, within node.Do.
func (g *session) noteReport(r member.Report, about membership.Member) {
	if !r.Alive {
		g.log.Info("suspected", "peer", r.Rank, "id", about.Identity, "cause", r.Cause)
		g.suspects[r.Rank] = Suspect{Rank: int(r.Rank), ID: about.Identity, Since: time.Now(), Cause: fmt.Sprint(r.Cause)}
	} else if _, known := g.suspects[r.Rank]; known {
		g.log.Info("no longer suspected", "peer", r.Rank, "id", about.Identity)
	}
}

// impairedPeriod is how long a process counts as impaired after an error of its own at
// opening or accepting a connection. Within it, connections are tried again.
const impairedPeriod = 10 * time.Second

// checkImpaired finds out whether this process lacks the means to reach others, as file
// descriptors. It is called within node.Do.
func (g *session) checkImpaired(now protocol.Time) {
	if g.localError == nil || g.machine.Static() {
		return
	}
	at, err := g.localError()
	impaired := err != nil && time.Since(at) < impairedPeriod
	if impaired == g.impaired {
		return
	}
	g.impaired = impaired
	if !impaired { // otherwise the transport has logged why
		g.log.Info("connections can be opened again", "after", err)
	}
	g.inputs.SetImpaired(now, impaired)
}

// watcher passes what the transport finds out about processes to the detector of
// connections and to the member, or to the seat of one.
type watcher struct {
	connections *detect.Connections
	// removed is called if a member of a later view does not let this process connect.
	removed func(view uint64, holder *membership.Member)
	// early, if not nil, is called if a peer does not know yet that this process has
	// joined.
	early func(peer protocol.Rank)
}

// Up implements [node.Watcher].
func (w *watcher) Up(peer protocol.Rank, incarnation uint64) { w.connections.Up(peer, incarnation) }

// Down implements [node.Watcher].
func (w *watcher) Down(peer protocol.Rank, cause error) {
	var removed *transport.RemovedError
	switch {
	case errors.As(cause, &removed):
		w.removed(removed.View, holderOf(removed))
		return
	case errors.Is(cause, transport.ErrOtherProcess):
		w.connections.Replaced(peer)
		return
	case errors.Is(cause, tcp.ErrEarly) && w.early != nil:
		w.early(peer)
	}
	w.connections.Down(peer, cause)
}

// removed says that a member of a later view does not let this process connect.
func (g *session) removed(view uint64, holder *membership.Member) {
	_ = g.node.Do(func(now protocol.Time) { g.inputs.Removed(now, view, holder) })
}

func holderOf(e *transport.RemovedError) *membership.Member {
	if e.Holder == nil {
		return nil
	}
	return &membership.Member{Identity: e.Holder.ID, Address: e.Holder.Address, Incarnation: e.Holder.Incarnation}
}
