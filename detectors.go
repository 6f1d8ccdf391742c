package pleach

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// firstIncarnation is that of every member in the first view of a group that starts
// as a whole: the real one is known when a process connects.
const firstIncarnation = 1

// makeDetectors makes the detectors: one that watches connections, the heartbeats', and
// those of the config.
func (g *Group) makeDetectors() {
	g.connections = detect.NewConnections(detect.ConnectionsConfig{StartTimeout: g.config.StartTimeout})
	g.detector = detect.All(append([]detect.Detector{g.connections, g.silent}, g.config.Detectors...)...)
	if d, ok := g.detector.(detect.MemberAware); ok {
		d.SetMember(detect.Member{
			Rank: g.self.Rank, Incarnation: g.self.Incarnation, Address: g.self.Address, Group: g.config.Group,
		})
	}
}

// startWatching starts the detectors.
func (g *Group) startWatching(v *membership.View) error {
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

// watch has the detectors watch the members of a view. The coordinator, its successor
// and the ring neighbors are connected to a member anyway: they probe it at once when
// the connection breaks, and the others leave it to them at first.
func (g *Group) watch(v *membership.View) {
	peers := make([]detect.Peer, 0, len(v.Members))
	self, _ := slices.BinarySearchFunc(v.Members, g.self.Rank, compareRank)
	for i, m := range v.Members {
		if i == self {
			continue
		}
		peer := detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: m.Address}
		if distance := max(i-self, self-i); self > 1 && distance > 1 && distance < len(v.Members)-1 {
			peer.Pause = distantProbeDelay
		}
		if peer.Incarnation == firstIncarnation {
			peer.Incarnation = 0
		}
		peers = append(peers, peer)
	}
	g.detector.Watch(peers)
}

// handleReport passes a detector's report to the membership protocol.
func (g *Group) handleReport(r detect.Report) {
	_ = g.node.Do(func(now protocol.Time) {
		if g.impaired && !r.Alive && errors.Is(r.Cause, detect.ErrSilent) {
			g.held[r.Rank] = r // the silence may be this process's own fault
			return
		}
		delete(g.held, r.Rank)
		g.takeReport(now, r)
	})
}

// takeReport takes in a report, within node.Do.
func (g *Group) takeReport(now protocol.Time, r detect.Report) {
	view := g.stack.views.View()
	m, ok := view.Member(r.Rank)
	if !ok || m.Incarnation != firstIncarnation && m.Incarnation != r.Incarnation {
		return // the process is no longer in the view
	}
	g.stack.now, g.stack.changed = now, true
	if r.Alive {
		if _, known := g.suspects[r.Rank]; known {
			g.log.Info("no longer suspected", "peer", r.Rank, "id", m.Identity)
		}
		g.stack.views.Trust(now, m.Rank, m.Incarnation)
		return
	}
	g.log.Info("suspected", "peer", r.Rank, "id", m.Identity, "cause", r.Cause)
	g.suspects[r.Rank] = Suspect{Rank: int(r.Rank), ID: m.Identity, Since: time.Now(), Cause: r.Cause}
	g.stack.views.Suspect(now, m.Rank, m.Incarnation)
}

// impairedPeriod is how long a process counts as impaired after an error of its own at
// opening or accepting a connection. Within it, connections are tried again.
const impairedPeriod = 10 * time.Second

// checkImpaired finds out whether this process lacks the means to reach others, as file
// descriptors. While it does, it takes no other member for silent (local health
// awareness: Dadgar, Phillips & Currey 2018, Lifeguard). It is called within node.Do.
func (g *Group) checkImpaired(now protocol.Time) {
	if g.localError == nil || g.stack.views == nil {
		return
	}
	at, err := g.localError()
	impaired := err != nil && time.Since(at) < impairedPeriod
	if impaired == g.impaired {
		return
	}
	g.impaired = impaired
	g.stack.views.SetImpaired(impaired)
	if impaired {
		return // the transport has logged why
	}
	g.log.Info("connections can be opened again", "after", err)
	for rank, r := range g.held {
		delete(g.held, rank)
		g.takeReport(now, r)
	}
}
