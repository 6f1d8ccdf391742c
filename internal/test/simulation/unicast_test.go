package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/protocol"
)

// sender is what a program sends to single members. The messages from one process to
// another arrive in order, once each, and all of them if both stay members.
type sender struct {
	process  *process
	channel  channel
	todo     []unicastMessage
	sent     map[identity]uint32 // how many, by the receiver
	received map[int]uint32      // by the sender's id
}

// channel is what messages to single members go through.
type channel interface {
	Send(to protocol.Rank, head, body []byte) error
	Deliver() (p2p.Message, bool)
}

// unicastMessage is one that waits. It goes to the next member from a rank on.
type unicastMessage struct {
	from protocol.Rank
	size int
}

// begin makes the endpoint of a process that becomes a member.
func (u *sender) begin(p *process, v *membership.View) *p2p.Endpoint {
	c := p.sim.plan.unicast
	c.Rank = p.self.Rank
	endpoint, err := p2p.New(c)
	if err != nil {
		p.sim.checker.fail("%v has no endpoint: %v", p, err)
		return nil
	}
	endpoint.Install(0, v)
	*u = newUnicast(p, endpoint)
	return endpoint
}

func newUnicast(p *process, c channel) sender {
	return sender{process: p, channel: c, sent: make(map[identity]uint32), received: make(map[int]uint32)}
}

// send sends what waits, as far as there is room.
func (u *sender) send() {
	for len(u.todo) > 0 {
		to := u.receiver(u.todo[0].from)
		if to == nil {
			return // it is alone
		}
		err := u.channel.Send(to.self.Rank, nil, unicastData(u.process.id, u.sent[to.key()], u.todo[0].size))
		gone := new(p2p.GoneError)
		switch {
		case errors.Is(err, p2p.ErrBusy):
			return
		case errors.As(err, &gone):
			u.todo = u.todo[1:] // the receiver was removed just now
			continue
		case err != nil:
			u.process.sim.checker.fail("%v cannot send to %v: %v", u.process, to, err)
			return
		}
		u.sent[to.key()]++
		u.todo = u.todo[1:]
	}
}

// receiver returns the first other member from a rank on that has begun.
func (u *sender) receiver(from protocol.Rank) *process {
	v := u.process.machine.View()
	for i := range v.Slots {
		m, ok := v.Member((from + i) % v.Slots)
		if to := u.process.group.members[identity{m.Identity, m.Incarnation}]; ok && to != nil && to != u.process {
			return to
		}
	}
	return nil
}

// receive takes what has arrived.
func (u *sender) receive() {
	c := &u.process.sim.checker
	for {
		m, ok := u.channel.Deliver()
		if !ok {
			return
		}
		sender := -1
		if len(m.Data) >= 4 {
			sender = int(binary.BigEndian.Uint32(m.Data))
		}
		if want := unicastData(sender, u.received[sender], len(m.Data)); !bytes.Equal(m.Data, want) {
			c.fail("%v gets a message of rank %d that is not number %d of process %d: %x", u.process, m.From, u.received[sender],
				sender, m.Data)
			return
		}
		u.received[sender]++
		c.sim.result.Unicasts++
		c.sim.hash.add(uint64(c.sim.now), uint64(u.process.id), uint64(sender), uint64(len(m.Data)))
	}
}

// hasAllOf reports whether a process has all that another one has sent to it.
func (u *sender) hasAllOf(q *sender) bool {
	return u.received[q.process.id] == q.sent[u.process.key()]
}

// unicastData tells the sender and the number of a message.
func unicastData(sender int, number uint32, size int) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(sender)), number)
	for i := len(b); i < size; i++ {
		b = append(b, byte(number)^byte(i))
	}
	return b
}

// sendSomething makes a program send messages to a member, or to several.
func (s *Simulation) sendSomething() {
	p, count := s.someProcess(), 1+s.rng.IntN(10)
	first, several := protocol.Rank(s.rng.IntN(len(s.hosts))), protocol.Rank(s.rng.IntN(2))
	size := s.rng.IntN(4 * s.plan.unicast.SegmentSize)
	if p == nil {
		return
	}
	p.do(func() {
		for i := range protocol.Rank(count) {
			p.unicast.todo = append(p.unicast.todo, unicastMessage{first + i*several, size})
		}
		p.step(func() {})
	})
}
