package simulation

import (
	"bytes"
	"errors"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// program is what runs on top of a member: it broadcasts, receives at its own pace, and
// asks now and then whether what it has sent is stable, by the rules of Group.Broadcast,
// Group.Messages and Group.WaitStable.
type program struct {
	process      *process
	todo         []saying   // messages to broadcast
	current      *broadcast // the one that is being written
	sent         []message  // all that were begun
	said         uint64     // broadcasts that have returned, of all topics
	deaf         protocol.Time
	reading      bool
	poll         poll
	held         held
	taken, noted uint64 // positions of the last message taken, and processed
}

// saying is a message to broadcast: of a size, or of a service.
type saying struct {
	size  int
	topic string // "": none
	data  []byte
	done  func() // when it is written; nil: nobody waits
}

// message is one that was broadcast.
type message struct {
	data   []byte
	sentIn uint64 // view in which it was begun
	view   uint64 // in which it was delivered; 0: it was not yet
}

// broadcast is a message that is being written.
type broadcast struct {
	data    []byte
	topic   string
	offset  int
	cut     uint64 // the restarts when it was begun
	written bool
	done    func()
}

// poll is a wait for stability.
type poll struct {
	stage    pollStage
	upTo     uint64
	messages int    // sent before
	said     uint64 // broadcasts that had returned before
	view     uint64 // in which it began
}

type pollStage int

const (
	noPoll pollStage = iota
	pollWanted
	pollFlushing
	pollWaiting
	pollProcessing
)

// say broadcasts a message of a size. Its bytes tell the sender and the number, as far
// as they have room.
func (p *program) say(size int) {
	p.todo = append(p.todo, saying{size: size})
	p.process.step(func() {})
}

// broadcast broadcasts a message of a service, and calls done in a step of its own when it is
// written.
func (p *program) broadcast(data []byte, done func()) {
	p.todo = append(p.todo, saying{data: data, done: done})
}

func (p *program) message(size int) []byte {
	data := make([]byte, size)
	x := uint32(len(p.sent))*2654435761 + uint32(p.process.id)*40503
	for i := range data {
		data[i] = byte(x>>(8*(i%4))) ^ byte(i)
	}
	if p.process.services != nil {
		data[0] = noService
	}
	return data
}

// write goes on with the broadcast. It reports whether there may be more to send.
func (p *program) write() bool {
	m := p.process.machine.Stream()
	if p.current == nil && !p.begin() {
		return p.goOnPolling()
	}
	b := p.current
	if cut := m.Restarts(); b.cut != cut {
		b.offset, b.written, b.cut = 0, false, cut // a new view has cut it in two
	}
	wrote := false
	for !b.written {
		piece := b.data[b.offset:min(b.offset+m.SegmentSize(), len(b.data))]
		switch err := b.write(m, piece); {
		case errors.Is(err, stream.ErrBusy):
			return wrote
		case err != nil:
			p.process.sim.checker.fail("%v cannot write: %v", p.process, err)
			return false
		}
		b.offset += len(piece)
		b.written, wrote = b.offset == len(b.data), true
	}
	if !wrote && m.Unwritten() == 0 {
		p.said++
		p.current = nil
		if b.done != nil {
			p.process.services.later(b.done)
		}
		return true
	}
	return wrote
}

// write writes a piece of a message.
func (b *broadcast) write(m *stream.Member, piece []byte) error {
	rest := len(b.data) - b.offset - len(piece)
	if b.topic != "" && b.offset == 0 {
		return m.WriteLabeled(stream.Label{Topic: b.topic}, piece, rest)
	}
	return m.Write(piece, rest)
}

// begin begins the next message. Without a quorum there is none.
func (p *program) begin() bool {
	if state, _ := p.process.machine.State(); len(p.todo) == 0 || state != membership.Active {
		return false
	}
	next := p.todo[0]
	p.todo = p.todo[1:]
	if next.topic != "" {
		said := p.process.rich.said
		next.data = unicastData(p.process.id, said[next.topic], next.size)
		said[next.topic]++
	} else {
		if next.data == nil {
			next.data = p.message(next.size)
		}
		p.sent = append(p.sent, message{data: next.data, sentIn: p.process.history.last()})
	}
	p.current = &broadcast{data: next.data, topic: next.topic, cut: p.process.machine.Stream().Restarts(), done: next.done}
	return true
}

// goOnPolling goes on with a wait for stability, which begins by sending what waits.
func (p *program) goOnPolling() bool {
	m, s := p.process.machine.Stream(), p.process.sim
	switch {
	case p.poll.stage == pollWanted:
		m.FlushBatch()
		// What is sent from now on may wait for a batch when the rest is sent, and is not asked about.
		p.poll = poll{stage: pollFlushing, messages: len(p.sent), said: p.said}
		return true
	case p.poll.stage == pollFlushing && m.Unwritten() == 0:
		p.poll.stage, p.poll.upTo, p.poll.view = pollWaiting, m.Poll(s.now), p.process.history.last()
		if s.options.Rich {
			m.PollProcessed(s.now)
		}
		return true
	}
	return false
}

// look looks after a step whether there is something for the program.
func (p *program) look() {
	m, s := p.process.machine.Stream(), p.process.sim
	if p.poll.stage == pollWaiting {
		switch lossy := m.Incomplete(); {
		case m.Stable() >= p.poll.upTo:
			s.checker.receipt(p.process, &p.poll)
			p.poll.stage = noPoll
			if s.options.Rich {
				p.poll.stage = pollProcessing
			}
		case len(lossy) > 0:
			s.checker.fail("%v is told that ranks %v have lost something", p.process, lossy)
		}
	}
	if p.poll.stage == pollProcessing && m.Processed() >= p.poll.upTo {
		s.checker.processed(p.process, &p.poll)
		p.poll = poll{}
	}
	if !p.process.replicated.ready() {
		return
	}
	if m.Pending() == 0 && (p.noted == p.taken || !s.options.Rich) || p.reading {
		return
	}
	p.reading = true
	s.after(max(p.deaf-s.now, s.plan.pace), func() { p.process.do(p.read) })
}

// read receives some messages.
func (p *program) read() {
	p.reading = false
	s := p.process.sim
	if s.now < p.deaf {
		return // look schedules it again
	}
	p.process.step(func() {
		p.note()
		for range s.plan.batch {
			m, ok := p.process.machine.Stream().Deliver(s.now)
			if !ok {
				return
			}
			p.taken = m.Position
			p.take(&m)
			p.hold(&m)
		}
	})
}

// note says that the program has processed what it took before, as it asks for more.
func (p *program) note() {
	if !p.process.sim.options.Rich {
		return
	}
	for i := range p.process.history.from {
		r := &p.process.history.from[i]
		r.processed = r.next
	}
	p.noted = p.taken
	p.process.machine.NoteProcessed(p.process.sim.now, 0, p.noted)
}

// held is the last message that a program has received, until it releases it.
type held struct {
	message stream.Message
	data    []byte // as it was
}

// hold keeps a message until the next one has come. Its memory is the program's until then.
func (p *program) hold(m *stream.Message) {
	if !bytes.Equal(p.held.message.Data, p.held.data) {
		p.process.sim.checker.fail("%v still holds a message of rank %d whose bytes have changed", p.process,
			p.held.message.Root)
	}
	if p.process.id%4 > 0 && p.process.services == nil {
		// others leave their memory to the garbage collector: services keep what they receive
		p.process.machine.Stream().Release(p.held.message.Lease)
	}
	p.held = held{*m, bytes.Clone(m.Data)}
}

// drain receives everything that is left after the end of the membership.
func (p *program) drain() {
	s := p.process.sim
	for {
		m, ok := p.process.machine.Stream().Deliver(s.now)
		if !ok {
			p.process.history.drained = true
			return
		}
		p.take(&m)
	}
}

// take takes a message.
func (p *program) take(m *stream.Message) {
	p.process.sim.checker.delivered(p.process, m)
	p.process.replicated.take(m)
	if m.Lost > 0 {
		p.process.services.lost(m.View, m.Root)
	} else {
		p.process.services.received(m.View, m.Root, m.Data)
	}
}

// idle reports whether the program has nothing to do and nothing to wait for.
func (p *program) idle() bool {
	return p.current == nil && len(p.todo) == 0 && p.poll.stage == noPoll && p.process.machine.Stream().Pending() == 0
}
