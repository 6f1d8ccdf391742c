package pleach

import (
	"time"

	"github.com/pleach-go/pleach/protocol"
)

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
		CorrectionDelay: time.Duration(s.Delay), Traffic: Traffic(g.node.Traffic()),
	}
}
