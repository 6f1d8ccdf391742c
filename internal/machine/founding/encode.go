package founding

import (
	"errors"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// maxText bounds an ID, an address and a domain, in bytes, as in a view.
const maxText = 255

func appendCandidate(b []byte, c *Candidate) []byte {
	for _, text := range []string{c.ID, c.Address, c.Domain} {
		b = wire.AppendBytes(b, []byte(text))
	}
	return wire.AppendUint16(wire.AppendUint64(b, c.Nonce), c.Version)
}

func decodeCandidate(d *wire.Decoder) Candidate {
	return Candidate{
		ID: string(d.Bytes()), Address: string(d.Bytes()), Domain: string(d.Bytes()), Nonce: d.Uint64(),
		Version: d.Uint16(),
	}
}

// valid reports whether a candidate can be a member.
func (c *Candidate) valid() bool {
	return c.ID != "" && c.Address != "" && c.Nonce != 0 && len(c.ID) <= maxText && len(c.Address) <= maxText &&
		len(c.Domain) <= maxText
}

// Encode appends the request to b.
func (r *Request) Encode(b []byte) []byte {
	b = wire.AppendUint32(appendCandidate(b, &r.From), uint32(r.Expect))
	b = wire.AppendUint64(wire.AppendUint64(b, r.Promise), r.Term)
	return wire.AppendBytes(b, []byte(r.Group))
}

// DecodeRequest decodes a request.
func DecodeRequest(b []byte) (Request, error) {
	d := wire.NewDecoder(b)
	r := Request{
		From: decodeCandidate(&d), Expect: int(d.Uint32()), Promise: d.Uint64(), Term: d.Uint64(),
		Group: string(d.Bytes()),
	}
	if err := d.Finish(); err != nil {
		return Request{}, err
	}
	if !r.From.valid() {
		return Request{}, errInvalid
	}
	return r, nil
}

// Encode appends the reply to b.
func (r *Reply) Encode(b []byte) []byte {
	b = wire.AppendUint64(appendCandidate(b, &r.From), r.Term)
	b = wire.AppendUint8(wire.AppendUint8(b, flag(r.Member)), flag(r.Free))
	b = wire.AppendUint32(b, uint32(len(r.Began)))
	for i := range r.Began {
		b = appendCandidate(b, &r.Began[i])
	}
	b = wire.AppendUint32(b, uint32(len(r.Others)))
	for _, address := range r.Others {
		b = wire.AppendBytes(b, []byte(address))
	}
	return b
}

// DecodeReply decodes a reply.
func DecodeReply(b []byte) (Reply, error) {
	d := wire.NewDecoder(b)
	r := Reply{From: decodeCandidate(&d), Term: d.Uint64(), Member: d.Uint8() == 1, Free: d.Uint8() == 1}
	for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
		r.Began = append(r.Began, decodeCandidate(&d))
	}
	for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
		r.Others = append(r.Others, string(d.Bytes()))
	}
	if err := d.Finish(); err != nil {
		return Reply{}, err
	}
	for i := range r.Began {
		if !r.Began[i].valid() {
			return Reply{}, errInvalid
		}
	}
	if !r.Member && !r.From.valid() {
		return Reply{}, errInvalid
	}
	return r, nil
}

func flag(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}

var errInvalid = errors.New("founding: not a candidate")
