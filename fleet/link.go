package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
)

// Link is the way of a zone's messages to another zone, as the lead of the first one sees it.
type Link struct {
	// Zone is where the link leads to, and Gateway the ID of the delegate there that gets the
	// messages, if the zone is in the backbone (Connected).
	Zone      string `json:"zone"`
	Gateway   string `json:"gateway,omitempty"`
	Connected bool   `json:"connected"`
	// Lag counts the messages that the zone has not acknowledged yet, and LagBytes what they
	// take. Acknowledgments of few messages take two seconds.
	Lag      uint64 `json:"lag"`
	LagBytes int    `json:"lag_bytes"`
	// Heard is how long ago the lead has heard of a delegate of the zone, or -1 if it never
	// has.
	Heard time.Duration `json:"heard_ns"`
}

// Links returns the links of this process's zone, by zone, if this process is its lead, and
// nil otherwise: [Fleet.Delegates] are the members to ask.
func (f *Fleet) Links() (links []Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var view pleach.View
	if f.backbone != nil {
		view = f.backbone.group.View()
	}
	for _, s := range f.machine.Links() {
		l := Link{Zone: s.Zone, Connected: s.Connected, Lag: s.Lag, LagBytes: s.LagBytes, Heard: -1}
		if m, ok := view.Member(s.Gateway); ok && s.Connected {
			l.Gateway = strings.TrimPrefix(m.ID, m.FailureDomain+"/")
		}
		if s.Heard > 0 {
			l.Heard = time.Duration(f.now() - s.Heard)
		}
		links = append(links, l)
	}
	return links
}

// Delegates returns the members of this process's zone that are in the backbone, as far as
// they have told it, the oldest first.
func (f *Fleet) Delegates() []pleach.Member {
	members := byAge(f.zone.View().Members())
	return slices.DeleteFunc(members, func(m pleach.Member) bool { return backboneOf(m.Meta) == "" })
}
