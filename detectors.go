package pleach

import (
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
		view := g.stack.views.View()
		m, ok := view.Member(r.Rank)
		if !ok || m.Incarnation != firstIncarnation && m.Incarnation != r.Incarnation {
			return // the process is no longer in the view
		}
		g.stack.now, g.stack.changed = now, true
		if r.Alive {
			g.stack.views.Trust(now, m.Rank, m.Incarnation)
			return
		}
		g.config.Logger.Info("suspected", "peer", r.Rank, "cause", r.Cause)
		g.stack.views.Suspect(now, m.Rank, m.Incarnation)
	})
}
