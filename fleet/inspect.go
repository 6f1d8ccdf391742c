package fleet

import (
	"context"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/backbone"
)

// inspectStagger is how long an inspection waits for an answer before it asks the next address.
const inspectStagger = 250 * time.Millisecond

// findIn answers a question to a zone. The timeout bounds each of its two inspections.
func (f *Fleet) findIn(ctx context.Context, q *backbone.AskZone) backbone.Found {
	v := f.inspect(ctx, groupName(f.config.Name, q.Zone), f.seedsOf(q.Zone), q.Timeout)
	addresses := announced(v, -1)
	known := len(addresses) > 0
	if !known {
		addresses = q.Known
	}
	b := f.findAt(ctx, addresses, q.Timeout)
	b.Zone, b.Reachable, b.Announced = q.Zone, v.Size() > 0, known
	return b
}

// findAt returns the backbone of the first delegate that answers.
func (f *Fleet) findAt(ctx context.Context, addresses []string, timeout backbone.Time) backbone.Found {
	v := f.inspect(ctx, f.config.Backbone.Group, addresses, timeout)
	return backbone.Found{View: backboneView(v), Asked: addresses}
}

// backboneView is a view of the backbone as the machine reads it.
func backboneView(v pleach.View) backbone.View {
	b := backbone.View{Quorum: v.Size() > 0 && v.Err == nil}
	for _, m := range v.Members() {
		b.Members = append(b.Members, backbone.Member{ID: m.ID, Address: m.Address, Zone: m.FailureDomain})
	}
	return b
}

// announced returns the addresses in the backbone that members of a zone announce, but one.
func announced(v pleach.View, but int) (addresses []string) {
	for _, m := range v.Members() {
		if a := backboneOf(m.Meta); a != "" && m.Rank != but {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// inspect returns the view of a group, of the first member that answers, or one of no member. It
// asks one after the other, and does not wait for long before it asks the next (RFC 8305, "Happy
// Eyeballs").
func (f *Fleet) inspect(
	ctx context.Context, group string, addresses []string, timeout backbone.Time,
) (view pleach.View) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(timeout))
	defer cancel()
	answers := make(chan pleach.View, len(addresses))
	b := &f.config.Backbone
	ask := func(address string) {
		var v pleach.View // of no member, if it does not answer
		c := pleach.Config{Group: group, Security: b.Security, Network: pleach.Network{Dial: b.Network.Dial}}
		c.Security.OnOperator = nil // nobody makes requests to this process
		if i, err := pleach.Inspect(ctx, c, address); err == nil {
			v = i.View
		}
		answers <- v
	}
	for asked, answered := 0, 0; answered < len(addresses); {
		var late <-chan time.Time
		if asked < len(addresses) {
			go ask(addresses[asked])
			asked++
			late = time.After(inspectStagger)
		}
		select {
		case view = <-answers:
			answered++
			if view.Size() > 0 {
				return view
			}
		case <-late:
		}
	}
	return view
}
