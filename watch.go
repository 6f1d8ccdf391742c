package pleach

import (
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
)

// firstIncarnation is that of everybody in the first view of a group that was
// started as a whole: which process has a rank is only seen when it is met.
const firstIncarnation = 1

// makeDetectors makes the detectors: connections that break, silence if asked
// for, and what the program brings.
func (g *Group) makeDetectors() {
	g.connections = detect.NewConnections(detect.ConnectionsConfig{StartTimeout: g.config.StartGrace})
	all := append([]detect.Detector{g.connections}, g.config.Detectors...)
	all = append(all, swimDetector(&g.config)...)
	g.detector = detect.All(all...)
	if d, ok := g.detector.(detect.MemberAware); ok {
		d.SetMember(detect.Member{
			Rank: g.config.Stream.Rank, Incarnation: g.config.Stream.Incarnation,
			Address: g.address, Group: g.config.Group,
		})
	}
}

// startWatching starts the detectors.
func (g *Group) startWatching(v *membership.View) error {
	if err := g.detector.Start(g.reported); err != nil {
		return fmt.Errorf("detector: %w", err)
	}
	g.watch(v)
	return nil
}

// outsiderPause is how long a member waits that loses its connection to another one
// whom others are closer to. It is longer than a change of the view takes.
const outsiderPause = 50 * time.Millisecond

// watch has the detectors watch the members of a view. Who coordinates, who would be
// next to, and the neighbors on the ring are connected to a member anyway: they look
// after it at once when the connection breaks, and the others leave it to them at
// first.
func (g *Group) watch(v *membership.View) {
	peers := make([]detect.Peer, 0, len(v.Members))
	self, _ := slices.BinarySearchFunc(v.Members, g.config.Stream.Rank, compareRank)
	for i, m := range v.Members {
		if i == self {
			continue
		}
		peer := detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: m.Address}
		if distance := max(i-self, self-i); self > 1 && distance > 1 && distance < len(v.Members)-1 {
			peer.Pause = outsiderPause
		}
		if peer.Incarnation == firstIncarnation {
			peer.Incarnation = 0
		}
		peers = append(peers, peer)
	}
	g.detector.Watch(peers)
}

// reported takes in what a detector says: it is for the views to act on.
func (g *Group) reported(r detect.Report) {
	_ = g.node.Do(func(now protocol.Time) {
		view := g.parts.views.View()
		m, ok := view.Member(r.Rank)
		if !ok || m.Incarnation != firstIncarnation && m.Incarnation != r.Incarnation {
			return // it is about somebody who is not there any more
		}
		g.parts.now, g.parts.changed = now, true
		if r.Alive {
			g.parts.views.Trust(now, m.Rank, m.Incarnation)
			return
		}
		g.config.Logger.Info("suspected", "rank", r.Rank, "by", g.Rank(), "cause", r.Cause)
		g.parts.views.Suspect(now, m.Rank, m.Incarnation)
	})
}
