package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// meeting is the list of processes that rank 0 keeps until it is complete.
type meeting struct {
	job      *Assignment
	listener net.Listener
	work     sync.WaitGroup

	mu         sync.Mutex
	silent     silent              // connections that have not registered
	registered map[int]*registrant // by rank
	confirmed  map[int]bool
	outside    netip.Addr         // address by which other hosts reach this one
	end        context.CancelFunc // of the meeting
}

// registrant is a process that has registered.
type registrant struct {
	registration
	conn net.Conn
	ip   netip.Addr
}

// spareConnections is how many connections beyond one per process may be silent: those of
// strangers, and of processes that try again.
const spareConnections = 64

func newMeeting(job *Assignment, l net.Listener) *meeting {
	return &meeting{
		job: job, listener: l, silent: silent{limit: int(job.Size) + spareConnections},
		registered: make(map[int]*registrant), confirmed: make(map[int]bool),
	}
}

// serve answers processes until all have the list, or the context ends.
func (m *meeting) serve(ctx context.Context) {
	until, end := context.WithCancel(ctx)
	defer end()
	m.end = end
	defer context.AfterFunc(until, func() { m.listener.Close() })()
	for {
		c, err := m.listener.Accept()
		if err != nil {
			break
		}
		m.mu.Lock()
		m.silent.add(c)
		m.mu.Unlock()
		m.work.Go(func() { m.receive(until, c) })
	}
	m.dismiss(ctx)
	m.work.Wait()
}

// receive takes in the process of a connection, and tells all when it is the last.
func (m *meeting) receive(ctx context.Context, c net.Conn) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.silent.remove(c)
	}()
	r, err := readRegistration(c, m.job.Secret)
	if !stop() || err != nil {
		c.Close() // an outsider
		return
	}
	g := &registrant{registration: r, conn: c, ip: hostOf(c.RemoteAddr())}
	if problem := m.takeIn(g); problem != "" {
		g.answer(m.job.Secret, directory{Error: problem})
	}
}

// takeIn adds a process to the list, or says why it does not.
func (m *meeting) takeIn(g *registrant) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if problem := m.problem(g); problem != "" {
		return problem
	}
	if former := m.registered[g.Rank]; former != nil {
		former.conn.Close() // it tries again
	}
	if !g.ip.IsLoopback() {
		m.outside = hostOf(g.conn.LocalAddr())
	}
	m.registered[g.Rank] = g
	if len(m.registered) == int(m.job.Size) {
		m.tellAll()
	}
	return ""
}

// problem says why a process cannot be taken in.
func (m *meeting) problem(g *registrant) string {
	job := m.job
	switch former := m.registered[g.Rank]; {
	case g.Group != job.Group:
		return fmt.Sprintf("rank %d is of the job %q, and this is the rendezvous of %q: give each job another address",
			g.Rank, g.Group, job.Group)
	case g.Size != int(job.Size):
		return fmt.Sprintf("rank %d is of a job of %d processes, and rank 0 of one of %d", g.Rank, g.Size, job.Size)
	case g.Rank < 0 || g.Rank >= g.Size:
		return fmt.Sprintf("there is no rank %d of %d", g.Rank, g.Size)
	case len(job.Secret) > 0 && g.Host != g.ip.String():
		return fmt.Sprintf("rank %d connects from %s, and rank 0 sees it at %s: there must be no address translation between them", g.Rank, g.Host, g.ip)
	case former != nil && former.Nonce != g.Nonce:
		return fmt.Sprintf("rank %d is here twice: at %v and at %v", g.Rank, netip.AddrPortFrom(former.ip, former.Port),
			netip.AddrPortFrom(g.ip, g.Port))
	}
	return ""
}

// tellAll sends the complete list to all, and again to one that has come again. A process that
// has died since it came does not hold up the others.
func (m *meeting) tellAll() {
	d := directory{Addresses: make([]string, m.job.Size)}
	for rank, g := range m.registered {
		ip := g.ip
		if ip.IsLoopback() && m.outside.IsValid() {
			ip = m.outside // only processes of this host come from there
		}
		d.Addresses[rank] = netip.AddrPortFrom(ip, g.Port).String()
	}
	var told sync.WaitGroup
	for rank, g := range m.registered {
		if !m.confirmed[rank] {
			told.Go(func() {
				if g.answer(m.job.Secret, d) {
					m.confirm(rank)
				}
			})
		}
	}
	m.work.Go(func() {
		told.Wait()
		time.AfterFunc(confirmTime, m.end)
	})
}

// confirm notes that a process has the list. When all have it, the meeting is over.
func (m *meeting) confirm(rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.confirmed[rank] = true
	if len(m.confirmed) == int(m.job.Size) {
		m.end()
	}
}

// answer sends a process its answer, and reports whether it has confirmed it.
func (g *registrant) answer(secret []byte, d directory) bool {
	defer g.conn.Close()
	d.MAC = d.sign(secret, g.Nonce)
	_ = g.conn.SetDeadline(time.Now().Add(confirmTime))
	if json.NewEncoder(g.conn).Encode(&d) != nil {
		return false
	}
	n, _ := g.conn.Read(make([]byte, 1))
	return n == 1
}

// dismiss tells those that wait which processes have not come.
func (m *meeting) dismiss(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []int
	for rank := range int(m.job.Size) {
		if m.registered[rank] == nil {
			missing = append(missing, rank)
		}
	}
	if len(missing) == 0 {
		return
	}
	why := fmt.Sprintf("ranks %v of %d have not come: %v", missing, m.job.Size, context.Cause(ctx))
	for _, g := range m.registered {
		m.work.Go(func() { g.answer(m.job.Secret, directory{Error: why}) })
	}
}
