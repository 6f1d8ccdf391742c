// Package control encodes what processes send each other outside a view: requests of
// processes that are not members, and of members to them, each over a connection of its
// own, and the replies. A request is a byte that tells its kind, and its fields. A reply
// is a status, and an error or a body; only the reply to a [Founding] is one without a
// status. Names of golden frames belong to the protocol, and frames do not change.
package control

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Request is one of the types of this file.
type Request interface {
	// append appends the kind of the request and its fields.
	append(b []byte) []byte
}

// The requests.
type (
	// View asks a member for its view. The reply is a [ViewReply].
	View struct{}
	// Join asks a member to let a candidate join. Replace says that the candidate takes
	// the place of a live member with its identity. The reply is an [Admission].
	Join struct {
		Candidate membership.Member
		Replace   bool
	}
	// Progress asks a member for its collective calls. The reply is JSON.
	Progress struct{}
	// Confirm sends a candidate its request back, which it confirms.
	Confirm struct{ Candidate membership.Member }
	// Founding is the request of a process that looks for its group.
	Founding struct{ founding.Request }
	// Force asks a member to continue with only some members of a view.
	Force struct {
		View  uint64
		Ranks []protocol.Rank
	}
	// CatchUp tells a member the address of a process that knows a later view.
	CatchUp struct {
		View    uint64
		Address string
	}
	// Decisions asks a member for its last decisions.
	Decisions struct{}
	// Raise asks a member for a view with a higher protocol version.
	Raise struct{ Version uint16 }
	// Evict asks a member for a view without another one, on behalf of an operator.
	Evict struct {
		Rank        protocol.Rank
		Incarnation uint64
	}
	// Introduce asks a process what it is in the group. The reply is a
	// [Introduction].
	Introduce struct{ Question }
	// Compare tells a process the settings of another one. The reply has those of the
	// process that is asked.
	Compare struct {
		From     Contact
		Settings Settings
	}
)

// The kinds of requests.
const (
	kindView uint8 = iota + 1
	kindJoin
	kindProgress
	kindConfirm
	kindFounding
	kindForce
	kindCatchUp
	kindDecisions
	kindRaise
	kindIntroduce
	kindCompare
	kindEvict
)

// Encode encodes a request.
func Encode(r Request) []byte { return r.append(nil) }

func (View) append(b []byte) []byte { return appendCandidate(b, kindView, &membership.Member{}, 0) }

func (Progress) append(b []byte) []byte {
	return appendCandidate(b, kindProgress, &membership.Member{}, 0)
}
func (Decisions) append(b []byte) []byte { return append(b, kindDecisions) }
func (r Join) append(b []byte) []byte {
	flags := uint8(0)
	if r.Replace {
		flags |= flagReplace
	}
	if r.Candidate.Observer {
		flags |= flagObserver
	}
	return appendCandidate(b, kindJoin, &r.Candidate, flags)
}

func (r Confirm) append(b []byte) []byte  { return appendCandidate(b, kindConfirm, &r.Candidate, 0) }
func (r Founding) append(b []byte) []byte { return r.Request.Encode(append(b, kindFounding)) }
func (r Raise) append(b []byte) []byte    { return wire.AppendUint16(append(b, kindRaise), r.Version) }

func (r Evict) append(b []byte) []byte {
	return wire.AppendUint64(wire.AppendRank(append(b, kindEvict), r.Rank), r.Incarnation)
}

func (r Introduce) append(b []byte) []byte { return r.Question.Encode(append(b, kindIntroduce)) }

func (r Compare) append(b []byte) []byte {
	return r.Settings.Encode(appendContact(append(b, kindCompare), &r.From))
}

func (r Force) append(b []byte) []byte {
	b = wire.AppendUint64(append(b, kindForce), r.View)
	for _, rank := range r.Ranks {
		b = wire.AppendUint32(b, uint32(rank))
	}
	return b
}

func (r CatchUp) append(b []byte) []byte {
	return wire.AppendBytes(wire.AppendUint64(append(b, kindCatchUp), r.View), []byte(r.Address))
}

// The flags of a candidate.
const (
	flagReplace  = 1
	flagObserver = 2 // from [membership.ObserverVersion] on
)

// appendCandidate appends a request that has the fields of a candidate, used or not.
func appendCandidate(b []byte, kind uint8, m *membership.Member, flags uint8) []byte {
	b = append(b, kind)
	for _, text := range []string{m.Identity, m.Address, m.Domain, m.Meta} {
		b = wire.AppendBytes(b, []byte(text))
	}
	return wire.AppendUint8(wire.AppendUint16(wire.AppendUint64(b, m.Nonce), m.Version), flags)
}

// Decode decodes a request.
func Decode(b []byte) (Request, error) {
	d := wire.NewDecoder(b)
	switch kind := d.Uint8(); kind {
	case kindView, kindJoin, kindProgress, kindConfirm:
		return decodeCandidate(kind, &d)
	case kindFounding:
		r, err := founding.DecodeRequest(d.Rest())
		return Founding{r}, err
	case kindForce:
		r := Force{View: d.Uint64()}
		for d.Left() > 0 && d.Err() == nil {
			r.Ranks = append(r.Ranks, protocol.Rank(d.Uint32()))
		}
		return r, d.Err()
	case kindCatchUp:
		r := CatchUp{View: d.Uint64(), Address: string(d.Bytes())}
		return r, d.Finish()
	case kindDecisions:
		return Decisions{}, d.Finish()
	case kindRaise:
		r := Raise{Version: d.Uint16()}
		return r, d.Finish()
	case kindEvict:
		r := Evict{d.Rank(), d.Uint64()}
		return r, d.Finish()
	case kindIntroduce:
		q, err := DecodeQuestion(d.Rest())
		return Introduce{q}, err
	case kindCompare:
		from := decodeContact(&d)
		if err := d.Err(); err != nil {
			return nil, err
		}
		settings, err := DecodeSettings(d.Rest())
		return Compare{from, settings}, err
	default:
		return nil, fmt.Errorf("request of kind %d", kind)
	}
}

func decodeCandidate(kind uint8, d *wire.Decoder) (Request, error) {
	m := membership.Member{
		Identity: string(d.Bytes()), Address: string(d.Bytes()), Domain: string(d.Bytes()),
		Meta: string(d.Bytes()), Nonce: d.Uint64(), Version: d.Uint16(),
	}
	flags := d.Uint8()
	if err := d.Finish(); err != nil {
		return nil, err
	}
	if flags > flagReplace|flagObserver {
		return nil, fmt.Errorf("request of kind %d with flags %d", kind, flags)
	}
	m.Observer = flags&flagObserver != 0
	switch kind {
	case kindView:
		return View{}, nil
	case kindJoin:
		return Join{m, flags&flagReplace != 0}, nil
	case kindProgress:
		return Progress{}, nil
	}
	return Confirm{m}, nil
}
