package fleetsimulation

import (
	"encoding/binary"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// member is a process: the machine, and what package fleet does for it.
type member struct {
	sim         *Simulation
	zone        *zone
	machine     *relay.Machine
	id          string
	rank        int
	incarnation uint64
	life        int        // of its zone
	began       relay.Time // when it was started
	ready       relay.Time // when it had the positions of its zone; 0: not yet
	dead        bool
	lead        bool

	// Its side of the zone's group.
	viewAt   relay.Time // when the last view is told
	arrivals map[*member]relay.Time
	topic    []*cast // broadcasts that have arrived and wait to be read
	reading  bool
	waiting  []item // what it is to broadcast for the machine
	casts    int
	stable   int // number of the last cast that all have
	inFlight int
	flying   []*cast
	polls    []poll

	// Its program.
	inbox   []relay.Message
	inboxed int // bytes
	pace    relay.Time
	taking  bool
	wrote   uint64
	blocked bool   // a broadcast waits for the window
	pending []byte // a frame of its own that waits for room in the zone's group
	got     map[relay.Origin]*progress
	origin  relay.Origin
	session *session
	tick    relay.Time
	delegate
}

// item is a frame to broadcast, or a poll if that is nil.
type item struct{ frame []byte }

// poll waits until the casts up to a number are stable.
type poll struct {
	number int
	done   func()
}

const never = relay.Time(1<<63 - 1)

func (m *member) String() string { return m.id }

func (m *member) age() uint64 { return m.incarnation<<20 | uint64(m.rank) }

// enter gets the positions of the zone, as fleet.Join does.
func (m *member) enter() {
	if m.dead {
		return
	}
	delegates := m.zone.delegates()
	if delegates[0] == m && !slices.ContainsFunc(delegates, func(d *member) bool {
		return d != m && d.machine.Ready() &&
			!d.dead
	}) {
		m.step(m.machine.Begin)
		m.isReady()
		return
	}
	others := slices.DeleteFunc(delegates, func(d *member) bool { return d == m })
	if m.casts == 0 {
		m.zone.broadcast(m, m.machine.Hello())
	}
	m.request(others[m.sim.rng.IntN(len(others))].rank, m.machine.TableRequest(), func(table []byte, err error) {
		if err == nil {
			m.step(func(now relay.Time) { err = m.machine.Join(now, table) })
		}
		if err == nil {
			m.isReady()
		} else {
			m.sim.after(20*millisecond, m.enter)
		}
	})
}

func (m *member) isReady() {
	m.ready = m.sim.now
	m.origin = relay.Origin{Zone: m.zone.name, ID: m.id, Incarnation: m.machine.Born() + m.incarnation}
	m.sim.checker.origins = append(m.sim.checker.origins, m)
	m.startDelegate()
	if m.sim.checker.met > 0 {
		m.write()
	}
}

// request asks another member of the zone.
func (m *member) request(rank int, body []byte, reply func([]byte, error)) {
	trip := func() relay.Time { return m.sim.between(0, m.sim.plan.near+1) }
	m.sim.after(trip(), func() {
		i := slices.IndexFunc(m.zone.view, func(o *member) bool { return o.rank == rank && !o.dead })
		if i < 0 {
			m.sim.after(trip(), func() { reply(nil, relay.ErrFrame) })
			return
		}
		answer, err := m.zone.view[i].machine.Serve(body)
		m.sim.after(trip(), func() { reply(answer, err) })
	})
}

// step has the machine take an input, and does what follows.
func (m *member) step(input func(relay.Time)) {
	if m.dead {
		return
	}
	input(m.sim.now)
	for _, msg := range m.machine.Delivered() {
		m.inbox = append(m.inbox, msg)
		m.inboxed += len(msg.Data)
	}
	for _, a := range m.machine.Actions() {
		m.perform(a)
	}
	if lead := m.machine.Lead(); lead != m.lead {
		m.lead = lead
		m.sim.record(m.id, "%s", map[bool]string{true: "leads", false: "leads no more"}[lead])
	}
	m.schedule()
	m.take()
	m.settle()
	if m.blocked && m.machine.Window(m.sim.plan.share) {
		m.blocked = false
		m.sim.after(0, m.write)
	}
}

// schedule sees to the next tick.
func (m *member) schedule() {
	d := m.machine.Deadline()
	if d < 0 || d >= m.tick {
		return
	}
	at := max(d, m.sim.now+millisecond)
	m.tick = d
	m.sim.after(at-m.sim.now, func() {
		if m.tick == d {
			m.tick = never
			m.step(m.machine.Tick)
		}
	})
}

func (m *member) perform(a relay.Action) {
	switch a := a.(type) {
	case relay.Cast:
		m.waiting = append(m.waiting, item{a.Frame})
	case relay.Poll:
		m.waiting = append(m.waiting, item{})
	case relay.Forward:
		m.sim.after(m.sim.between(0, m.sim.plan.near+1), func() {
			for _, to := range m.zone.alive() {
				if to.rank == a.Rank && to != m {
					to.step(func(now relay.Time) { _ = to.machine.Forwarded(now, m.rank, a.Frame) })
				}
			}
		})
	case relay.Send:
		if m.session != nil {
			m.session.send(a)
		}
	case relay.Fetch:
		m.request(a.Rank, a.Frame, func(reply []byte, err error) {
			if err == nil {
				m.step(func(now relay.Time) { _ = m.machine.Fetched(now, reply) })
			}
		})
	}
}

// settle broadcasts what waits, as far as the group has room, and ends polls.
func (m *member) settle() {
	for m.inFlight < m.sim.plan.groupWindow && !m.dead {
		switch {
		case m.pending != nil && (len(m.waiting) == 0 || m.sim.rng.IntN(2) == 0):
			frame := m.pending
			m.pending = nil
			m.zone.broadcast(m, frame)
			m.sim.after(0, m.write)
		case len(m.waiting) == 0:
			m.endPolls()
			return
		case m.waiting[0].frame == nil:
			m.waiting = m.waiting[1:]
			m.polls = append(m.polls, poll{m.casts, func() { m.step(func(now relay.Time) { m.machine.Stable(now, true) }) }})
		default:
			frame := m.waiting[0].frame
			m.waiting = m.waiting[1:]
			m.zone.broadcast(m, frame)
		}
	}
	m.endPolls()
}

func (m *member) endPolls() {
	for len(m.polls) > 0 && m.polls[0].number <= m.stable {
		done := m.polls[0].done
		m.polls = m.polls[1:]
		m.sim.after(m.sim.between(0, 2*m.sim.plan.near+1), done)
	}
}

// full reports whether the program does not read what has come.
func (m *member) full() bool { return m.inboxed > m.sim.plan.keepBytes }

// read reads what has arrived in the zone, one message after the other, unless the program
// does not.
func (m *member) read() {
	if m.reading || len(m.topic) == 0 || m.full() || m.dead {
		return
	}
	m.reading = true
	m.sim.after(microsecond, func() {
		m.reading = false
		c := m.topic[0]
		m.topic = m.topic[1:]
		m.step(func(now relay.Time) { _ = m.machine.FromZone(now, c.from.rank, c.frame) })
		m.read()
	})
}

// take has the program take a message, at its pace.
func (m *member) take() {
	if m.taking || len(m.inbox) == 0 || m.dead {
		return
	}
	m.taking = true
	m.sim.after(m.pace, func() {
		m.taking = false
		if m.dead {
			return
		}
		msg := m.inbox[0]
		m.inbox = m.inbox[1:]
		m.inboxed -= len(msg.Data)
		m.sim.checker.deliver(m, &msg)
		m.take()
		m.read()
		if m.session != nil {
			m.session.read()
		}
	})
}

// write has the program broadcast what is left of its messages, as fast as it may.
func (m *member) write() {
	if m.dead || m.ready == 0 || m.pending != nil || m.blocked || m.wrote >= uint64(m.sim.plan.messages) {
		return
	}
	if !m.machine.Window(m.sim.plan.share) {
		m.blocked = true
		return
	}
	m.wrote++
	m.sim.result.Sent++
	data := binary.BigEndian.AppendUint64(nil, m.wrote)
	data = append(data, make([]byte, m.sim.rng.IntN(m.sim.plan.size))...)
	m.step(func(now relay.Time) { m.pending = m.machine.Broadcast(now, "", data) })
	m.settle()
}
