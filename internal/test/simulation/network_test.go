package simulation

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/services/session"
	"github.com/pleach-go/pleach/protocol"
)

// The network connects hosts. It promises what package transport says: order while a
// connection lasts, bounded queues, and Down for what is lost. Bytes that a host does not
// take, because its process is paused or the way is blocked, stay in the sender's queue.

// host is a machine. A process that restarts does so on the same host, with its disk. It may
// get another address there, and then its former ones refuse connections.
type host struct {
	index   int
	address string   // of the last process
	process *process // that listens; nil: connections are refused
	disk    disk
	clock   clock
	// The client of services on the host, and what it has no result of.
	client     session.Client[*operation]
	operations []*operation
	// Marks of tokens on the disk: no token was above.
	shardMark, leaseMark uint64
	version              uint16 // of the program that is installed
	off                  bool   // nothing answers
	deaf                 []bool // by the other host: its packets do not arrive here
}

// at returns the process that listens at an address of the host, or nil.
func (h *host) at(address string) *process {
	if p := h.process; p != nil && p.address == address {
		return p
	}
	return nil
}

// reaches reports whether packets of one host arrive at another.
func (h *host) reaches(to *host) bool { return !h.off && !to.off && !to.deaf[h.index] }

// probe models the dial of a probe: a host without the process refuses, one that cannot be reached
// is silent, and the host of a paused process accepts.
func (s *Simulation) probe(from *host, address string) (result detection.Result, took protocol.Time) {
	switch to := s.hostAt(address); {
	case !from.reaches(to) || !to.reaches(from):
		result, took = detection.Silent, 200*millisecond
	case to.at(address) == nil:
		result, took = detection.Refused, 2*s.latency()
	default:
		result, took = detection.Reachable, 2*s.latency()
	}
	if s.options.Dialed != nil {
		result = s.options.Dialed(result)
	}
	return result, took
}

// latency draws how long a packet takes.
func (s *Simulation) latency() protocol.Time {
	return s.plan.latency + between(s.rng, 0, s.plan.jitter)
}

// conn is a connection between two processes. End 0 has dialed it.
type conn struct {
	ends [2]end
}

// end is one end of a connection, and the direction that begins there.
type end struct {
	process *process
	peer    protocol.Rank // the rank of the other end
	// incarnation is that of the process at the other end.
	incarnation uint64
	open        bool     // its process uses the connection
	closed      bool     // its process has closed it, or is gone
	frames      []packet // on their way to the other end
	queued      int      // bytes that the other end has not acknowledged
	taken       int      // of them, those that have arrived
	full        bool
	free        protocol.Time // when the last byte is on the wire
	last        protocol.Time // when the last frame arrives
	stuck       bool          // frames wait for the way or the process at the other end
	since       protocol.Time // stuck since then
}

type packet struct {
	at    protocol.Time
	frame []byte
}

// headerSize is what a frame costs besides its bytes.
const headerSize = 4

// transmit sends a frame from an end. There is room for it.
func (s *Simulation) transmit(c *conn, i int, frame []byte) {
	e := &c.ends[i]
	size := len(frame) + headerSize
	e.queued += size
	e.free = max(e.free, s.now) + protocol.Time(size)*s.plan.perByte
	e.last = max(e.last, e.free+s.latency())
	e.frames = append(e.frames, packet{e.last, frame})
	s.result.Frames++
	s.events.push(e.last, func() { s.arrive(c, i) })
}

// arrive passes the frames on that have arrived from an end.
func (s *Simulation) arrive(c *conn, i int) {
	from, to := &c.ends[i], &c.ends[1-i]
	if to.closed {
		s.reset(c, i) // the host does not know the connection
		return
	}
	for len(from.frames) > 0 && from.frames[0].at <= s.now && !from.closed {
		if !from.process.host.reaches(to.process.host) || to.process.paused {
			s.stall(c, i)
			return
		}
		if !to.open {
			return // it opens soon
		}
		frame := from.frames[0].frame
		from.frames = from.frames[1:]
		from.taken += len(frame) + headerSize
		to.process.receive(to.peer, frame)
	}
	s.acknowledge(c, i)
}

// acknowledge frees the queue of an end, if acknowledgments reach it.
func (s *Simulation) acknowledge(c *conn, i int) {
	e, other := &c.ends[i], &c.ends[1-i]
	if !other.process.host.reaches(e.process.host) {
		s.stall(c, i)
		return
	}
	e.queued -= e.taken
	if e.taken > 0 {
		e.stuck = false
	}
	e.taken = 0
	if e.full && e.queued <= s.plan.queueBytes/2 && e.open {
		e.full = false
		e.process.writable(e.peer)
	}
}

// stall notes that bytes of an end do not get through. The system gives up after a while
// if the other host does not acknowledge them; a paused process's host does.
func (s *Simulation) stall(c *conn, i int) {
	e, other := &c.ends[i], &c.ends[1-i]
	if e.stuck {
		return
	}
	e.stuck, e.since = true, s.now
	since := s.now
	s.after(s.plan.userTimeout, func() {
		blocked := !e.process.host.reaches(other.process.host) || !other.process.host.reaches(e.process.host)
		if e.stuck && e.since == since && blocked && !e.closed {
			s.shut(c, i)
		}
	})
}

// shut closes a connection from one end, whose process learns it. So does the other
// one, unless the way there is blocked.
func (s *Simulation) shut(c *conn, i int) {
	e, other := &c.ends[i], &c.ends[1-i]
	if e.closed {
		return
	}
	opened := e.open
	if opened && len(other.frames) > 0 {
		e.process.readPart(e.peer, other.frames[0].frame)
	}
	e.open, e.closed, e.frames = false, true, nil
	e.process.connClosed(c, e, opened)
	s.reset(c, 1-i)
	if other.closed {
		s.conns = slices.DeleteFunc(s.conns, func(o *conn) bool { return o == c })
	}
}

// reset closes a connection at an end because the other end is closed, unless the way
// there is blocked.
func (s *Simulation) reset(c *conn, i int) {
	if e, other := &c.ends[i], &c.ends[1-i]; !e.closed && other.process.host.reaches(e.process.host) {
		s.after(s.latency(), func() { s.shut(c, i) })
	}
}

// rouse lets connections go on after the network or a process has changed: what was
// stuck arrives, and ends whose other end is closed learn it.
func (s *Simulation) rouse() {
	for _, c := range slices.Clone(s.conns) {
		for i := range c.ends {
			e, other := &c.ends[i], &c.ends[1-i]
			if e.closed {
				continue
			}
			if other.closed {
				s.reset(c, i)
			} else if e.stuck {
				e.stuck = false
				s.after(s.latency(), func() { s.arrive(c, i) })
			}
		}
	}
}
