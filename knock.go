package pleach

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// Somebody who is not a member knocks at one, to look at the view, to become a
// member, or to ask what a process of a job is doing. What they say: a byte that tells which; for who wants to join, its
// identity, address, failure domain and incarnation. The answer: a byte that tells
// whether it is yes, then an error's text, or a view, the guest's rank in it and
// where it begins in every stream.
const (
	knockLook uint8 = 1
	knockJoin uint8 = 2
	knockWork uint8 = 3 // what is it doing; see world_look.go

	answerNo    uint8 = 0
	answerYes   uint8 = 1
	answerLater uint8 = 2 // not now, but it is worth another try
)

// ErrRefused is what every refusal of a member wraps.
var ErrRefused = errors.New("pleach: refused")

// request is what a guest says.
func request(kind uint8, m *membership.Member) []byte {
	b := []byte{kind}
	for _, text := range []string{m.Identity, m.Address, m.Domain} {
		b = wire.AppendBytes(b, []byte(text))
	}
	return wire.AppendUint64(b, m.Incarnation)
}

// parseRequest reads what a guest says.
func parseRequest(b []byte) (kind uint8, m membership.Member, err error) {
	d := wire.NewDecoder(b)
	kind = d.Uint8()
	m = membership.Member{Identity: string(d.Bytes()), Address: string(d.Bytes()), Domain: string(d.Bytes()), Incarnation: d.Uint64()}
	if err = d.Finish(); err == nil && (kind < knockLook || kind > knockWork) {
		err = fmt.Errorf("knock of kind %d", kind)
	}
	return kind, m, err
}

// knocked is a member's part.
func (g *Group) knocked(request []byte, answer func([]byte)) {
	switch kind, c, err := parseRequest(request); {
	case err != nil:
		answer(refusal(err))
	case kind == knockWork:
		answer(g.tellWork())
	case kind == knockLook:
		_ = g.node.Do(func(protocol.Time) { answer(g.welcome(g.parts.views.View(), protocol.NoRank)) })
	default:
		_ = g.node.Do(func(now protocol.Time) {
			g.guests.last++
			g.guests.waiting[g.guests.last] = answer
			g.parts.now, g.parts.changed = now, true
			g.parts.views.Join(now, g.guests.last, c)
		})
	}
}

// guests are those who wait to be let in. Used within node.Do.
type guests struct {
	last    uint64
	waiting map[uint64]func([]byte)
}

// answerGuests answers those whom the views have decided about.
func (g *Group) answerGuests() {
	for {
		a, ok := g.parts.views.Answers()
		if !ok {
			return
		}
		answer := g.guests.waiting[a.Token]
		delete(g.guests.waiting, a.Token)
		switch {
		case answer == nil:
		case a.Err != nil:
			answer(refusal(a.Err))
		default:
			answer(g.welcome(a.View, a.Rank))
		}
	}
}

func refusal(err error) []byte {
	kind := answerNo
	// Whoever is out of the group itself says nothing about it: another may
	// know better.
	var evicted *membership.EvictedError
	if errors.Is(err, membership.ErrTimeout) || errors.Is(err, membership.ErrFull) || errors.Is(err, membership.ErrLeft) || errors.As(err, &evicted) {
		kind = answerLater
	}
	return append([]byte{kind}, err.Error()...)
}

// welcome answers with the present view.
func (g *Group) welcome(v membership.View, rank protocol.Rank) []byte {
	b := wire.AppendBytes([]byte{answerYes}, v.Encode(nil))
	b = wire.AppendRank(b, rank)
	return membership.EncodeHaves(b, havesOf(g.parts.stream.Marks()))
}

// invitation is what a welcome says.
type invitation struct {
	view  membership.View
	rank  protocol.Rank
	start []membership.Have
}

// parseAnswer reads a member's answer.
func parseAnswer(b []byte) (invitation, error) {
	d := wire.NewDecoder(b)
	switch kind := d.Uint8(); kind {
	case answerYes:
	case answerLater:
		return invitation{}, fmt.Errorf("not let in yet: %s", d.Rest())
	default:
		return invitation{}, fmt.Errorf("%w: %s", ErrRefused, d.Rest())
	}
	view, rank, haves := d.Bytes(), d.Rank(), d.Rest()
	if err := d.Err(); err != nil {
		return invitation{}, err
	}
	var i invitation
	var errs [2]error
	i.view, errs[0] = membership.DecodeView(view)
	i.start, errs[1] = membership.DecodeHaves(haves)
	i.rank = rank
	return i, errors.Join(errs[:]...)
}

// knock asks one member after the other until one answers, or ctx ends.
func knock(ctx context.Context, c tcp.Config, members []string, request []byte) (invitation, error) {
	var last error
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		for _, address := range members {
			b, err := tcp.Request(ctx, c, address, request)
			if err == nil {
				var i invitation
				if i, err = parseAnswer(b); err == nil {
					return i, nil
				}
			}
			if last = err; errors.Is(err, ErrRefused) {
				return invitation{}, err
			}
		}
		select {
		case <-ctx.Done():
			return invitation{}, fmt.Errorf("%w; last: %w", ctx.Err(), last)
		case <-time.After(pause):
		}
	}
}

// Look asks a member who is in its group, without becoming one.
func Look(ctx context.Context, c Config, address string) (View, error) {
	i, err := knock(ctx, tcp.Config{Group: c.Group, TLS: c.TLS}, []string{address}, request(knockLook, &membership.Member{}))
	if err != nil {
		return View{}, fmt.Errorf("pleach: look at %s: %w", address, err)
	}
	return *viewOf(&i.view), nil
}
