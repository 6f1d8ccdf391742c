package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// ClientID names a process that proposes, from its Join to its end.
type ClientID [16]byte

// maxSessions is of how many processes the results are kept: those that have proposed last.
const maxSessions = 1024

// session is what is known of a process that proposes.
type session struct {
	applied uint64            // sequence number of its last command
	used    uint64            // number of its last message
	results map[uint64][]byte // of the commands that it may still wait for
}

// Machine is a state machine that commands are applied to.
type Machine interface {
	Apply(command []byte) (result []byte)
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
}

// Replicas are the state machines of a member and their sessions.
type Replicas struct {
	machines map[string]Machine
	sessions map[ClientID]*session
	// Applied counts commands, and Repeated those that came again and were not applied.
	Applied, Repeated uint64
}

// OfferState returns how new the state is that the machines begin with: the sum of what those
// offer that know.
func (r *Replicas) OfferState() (sum uint64) {
	for _, m := range r.machines {
		if o, ok := m.(interface{ OfferState() uint64 }); ok {
			sum += o.OfferState()
		}
	}
	return sum
}

// NewReplicas returns machines, by their names, to which nothing was applied.
func NewReplicas(machines map[string]Machine) Replicas {
	return Replicas{machines: machines, sessions: make(map[ClientID]*session)}
}

// Outcome is what has become of a proposal.
type Outcome struct {
	Seq    uint64
	Result []byte
	// Forgotten says that the group does not know the process any more.
	Forgotten bool
}

// Head is how many bytes a command has before its own.
const Head = len(ClientID{}) + 16

// encode encodes a command: the process that proposes it, its number, and the lowest number
// that the process waits for.
func encode(client ClientID, seq, waiting uint64, command []byte) []byte {
	b := make([]byte, 0, Head+len(command))
	b = append(b, client[:]...)
	return append(wire.AppendUint64(wire.AppendUint64(b, seq), waiting), command...)
}

// Apply applies a command to a machine, as the message of a number, unless it is applied already.
// It reports false if the process that has proposed it sends it again.
func (r *Replicas) Apply(number uint64, name string, data []byte) (client ClientID, o Outcome, ok bool) {
	if len(data) < Head {
		return client, o, false
	}
	copy(client[:], data)
	d := wire.NewDecoder(data[len(client):])
	seq, waiting, command := d.Uint64(), d.Uint64(), d.Rest()
	s := r.session(client, seq, number)
	if s == nil {
		return client, Outcome{Seq: seq, Forgotten: true}, true
	}
	maps.DeleteFunc(s.results, func(seq uint64, _ []byte) bool { return seq < waiting })
	switch {
	case seq > s.applied+1: // its process has sent it while it was about to begin again before it
		return client, o, false
	case seq == s.applied+1:
		s.applied, s.results[seq] = seq, nil
		if machine := r.machines[name]; machine != nil {
			s.results[seq] = machine.Apply(command)
		}
		r.Applied++
	default:
		r.Repeated++
	}
	return client, Outcome{Seq: seq, Result: s.results[seq]}, true
}

// session returns the session of a process. A new one begins with the number 1; nil: the process
// is not known any more.
func (r *Replicas) session(client ClientID, seq, number uint64) *session {
	s := r.sessions[client]
	if s == nil {
		if seq != 1 {
			return nil
		}
		s = &session{results: make(map[uint64][]byte)}
		r.sessions[client] = s
	}
	s.used = number
	if len(r.sessions) > maxSessions {
		oldest := client
		for c, o := range r.sessions {
			if o.used < r.sessions[oldest].used {
				oldest = c
			}
		}
		delete(r.sessions, oldest)
	}
	return s
}

// Snapshot writes the sessions and the machines.
func (r *Replicas) Snapshot(w io.Writer) error {
	b := wire.AppendUint32(nil, uint32(len(r.sessions)))
	for _, c := range slices.SortedFunc(maps.Keys(r.sessions),
		func(a, b ClientID) int { return bytes.Compare(a[:], b[:]) }) {
		s := r.sessions[c]
		b = wire.AppendUint64(wire.AppendUint64(append(b, c[:]...), s.applied), s.used)
		b = wire.AppendUint32(b, uint32(len(s.results)))
		for _, seq := range slices.SortedFunc(maps.Keys(s.results), cmp.Compare) {
			b = wire.AppendBytes(wire.AppendUint64(b, seq), s.results[seq])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.machines)) {
		var machine bytes.Buffer
		if err := r.machines[name].Snapshot(&machine); err != nil {
			return fmt.Errorf("machine %q: %w", name, err)
		}
		b = wire.AppendBytes(wire.AppendBytes(b, []byte(name)), machine.Bytes())
	}
	_, err := w.Write(b)
	return err
}

// Restore replaces the sessions and the machines by those that another member has written.
func (r *Replicas) Restore(from io.Reader) error {
	b, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	d := wire.NewDecoder(b)
	r.sessions = make(map[ClientID]*session)
	for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
		var c ClientID
		for i := range c {
			c[i] = d.Uint8()
		}
		s := &session{applied: d.Uint64(), used: d.Uint64(), results: make(map[uint64][]byte)}
		for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
			seq := d.Uint64()
			s.results[seq] = d.Bytes()
		}
		r.sessions[c] = s
	}
	restored := 0
	for ; d.Left() > 0 && d.Err() == nil; restored++ {
		name, state := string(d.Bytes()), d.Bytes()
		machine := r.machines[name]
		if machine == nil {
			return fmt.Errorf("replicated: the group has a machine %q: all members have the same", name)
		}
		if err := machine.Restore(bytes.NewReader(state)); err != nil {
			return fmt.Errorf("machine %q: %w", name, err)
		}
	}
	if restored < len(r.machines) {
		return errors.New("replicated: the group has fewer machines: all members have the same")
	}
	return d.Finish()
}
