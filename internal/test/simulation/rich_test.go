package simulation

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// What programs do beside broadcasts to all: they broadcast to topics, send to single members by
// the channels of the member itself, change their metas, say that they have the state of the
// group, and mark messages. Some get their own messages, too, and are told where views begin. And
// views change along trees, as in large groups.

// topicNames are the topics of programs.
var topicNames = []string{"a", "topic"}

// rich is what a program does beside broadcasts.
type rich struct {
	direct        sender
	subscriptions []*subscription
	said          map[string]uint32 // messages that were begun, by topic
	meta          string            // "": it has asked for none
	synced        bool
}

// subscription is a program's queue for a topic.
type subscription struct {
	id    uint64
	topic string
	next  map[int]uint32 // number of the message to come, by the sender's id
	lossy bool           // it was told that messages are lost
}

// directChannel is what a member offers to send to single members.
type directChannel struct{ *member.Machine }

// Send implements channel.
func (c directChannel) Send(to protocol.Rank, head, body []byte) error {
	return c.SendDirect(to, head, body, nil)
}

// Deliver implements channel.
func (c directChannel) Deliver() (p2p.Message, bool) { return c.DeliverDirect() }

// beginRich schedules what programs do, from random numbers of its own.
func (s *Simulation) beginRich(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x72696368))
	s.plan.stream.Replicate = rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		s.plan.flat = -1
	}
	for range 60 {
		at, host, kind := protocol.Time(rng.Int64N(int64(s.plan.end))), rng.IntN(len(s.hosts)), rng.IntN(8)
		topic, to, size := topicNames[rng.IntN(len(topicNames))], protocol.Rank(rng.IntN(len(s.hosts))),
			8+rng.IntN(s.plan.longest)
		s.after(at, func() {
			if p := s.hosts[host].process; p != nil {
				p.do(func() { p.use(kind, topic, to, size) })
			}
		})
	}
}

// use has a program do something.
func (p *process) use(kind int, topic string, to protocol.Rank, size int) {
	if p.state != running {
		return
	}
	r, now := &p.rich, p.sim.now
	p.step(func() {
		switch kind {
		case 0, 1:
			r.subscriptions = append(r.subscriptions, &subscription{
				p.machine.Subscribe(topic), topic, make(map[int]uint32),
				false,
			})
		case 2:
			if n := len(r.subscriptions); n > 1 {
				p.machine.Unsubscribe(now, r.subscriptions[n-1].id)
				r.subscriptions = r.subscriptions[:n-1]
			}
		case 3, 4:
			p.program.todo = append(p.program.todo, saying{size: size, topic: topic})
		case 5:
			r.direct.todo = append(r.direct.todo, unicastMessage{to, size})
		case 6:
			if meta := fmt.Sprint(size); p.machine.SetMeta(now, meta) == nil {
				r.meta = meta
			}
		case 7:
			r.synced = true
			p.machine.SetSynced(now)
			p.machine.Trace()
		}
	})
}

// readRich takes what has arrived for a program beside broadcasts.
func (p *process) readRich() {
	if !p.sim.options.Rich {
		return
	}
	p.rich.direct.receive()
	p.rich.direct.send()
	for _, sub := range p.rich.subscriptions {
		for m, ok := p.machine.DeliverTopic(p.sim.now, sub.id); ok; m, ok = p.machine.DeliverTopic(p.sim.now, sub.id) {
			p.machine.NoteProcessed(p.sim.now, sub.id, m.Position)
			if m.Lost > 0 || m.Begins {
				sub.lossy = sub.lossy || m.Lost > 0
				continue
			}
			p.sim.checker.topical(p, sub, m.Topic, m.Data)
		}
	}
	view := p.machine.View()
	for _, a := range p.machine.Stream().Arrivals() {
		if !view.Has(a.From) || a.At > p.sim.now || (a.Root == p.self.Rank) != (a.From == p.self.Rank) {
			p.sim.checker.fail("%v is told of an arrival %+v", p, a)
		}
	}
}

// begins checks that a program is told of a view when it has all messages of those before.
func (c *checker) begins(p *process, m *stream.Message) {
	h := &p.history
	switch present := max(h.begun, h.views[0]); {
	case m.Begins && m.View <= present:
		c.fail("%v is told that view %d begins, after %d", p, m.View, present)
	case m.Begins:
		h.begun = m.View
	case c.sim.plan.stream.Replicate && m.View != present:
		c.fail("%v gets a message of view %d in view %d", p, m.View, present)
	}
}

// topical checks a message of a topic: those of a sender come in order, and without a gap.
func (c *checker) topical(p *process, sub *subscription, topic string, data []byte) {
	sender, number := int(binary.BigEndian.Uint32(data)), binary.BigEndian.Uint32(data[4:])
	next, begun := sub.next[sender]
	if topic != sub.topic || !bytes.Equal(data, unicastData(sender, number, len(data))) || begun &&
		(number < next || number > next && !sub.lossy) {
		c.fail("%v gets message %d of process %d to %q, of which %d was to come in %q", p, number, sender, topic, next,
			sub.topic)
	}
	sub.next[sender] = number + 1
	c.sim.result.Topical++
}

// sayRich broadcasts to all topics, and sends to the next member.
func (p *process) sayRich() {
	if !p.sim.options.Rich {
		return
	}
	for _, topic := range topicNames {
		p.program.todo = append(p.program.todo, saying{size: 100, topic: topic})
	}
	p.rich.direct.todo = append(p.rich.direct.todo, unicastMessage{p.self.Rank + 1, 100})
}

// hasRich reports whether a program has what another one has sent beside broadcasts, and what it
// has asked for.
func (p *process) hasRich(q *process) bool {
	for _, sub := range p.rich.subscriptions {
		said := q.rich.said[sub.topic] // nothing, if it has begun after the trouble
		if next, begun := sub.next[q.id]; begun && next != said || !begun && said > 0 && p.sim.asked {
			return false
		}
	}
	v := p.machine.View()
	self, _ := v.Member(p.self.Rank)
	return p.rich.direct.hasAllOf(&q.rich.direct) && (p.rich.meta == "" || self.Meta == p.rich.meta) &&
		(!p.rich.synced || self.Synced)
}
