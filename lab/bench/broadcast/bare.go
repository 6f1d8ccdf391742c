package broadcast

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Frames as Pleach sends them: a length, a head and a segment.
const (
	lengthSize  = 4
	headSize    = 30
	leftSize    = 4 // after the head, if the message has further segments
	segmentSize = 64 << 10
	// joined is how much is read, and forwarded in one write, at least.
	joined = 64 << 10
)

// star is the tree in which all members are the root's children.
func star(members int) (topology.Tree, error) {
	return topology.New(topology.KAry(max(members-1, 1)), topology.Interleaved, protocol.Rank(members), 0)
}

// bareMember is a member of a bare tree of connections: what comes from the parent
// is written to the children, and nothing else. A member below a dead one gets
// nothing.
type bareMember struct {
	deliver  func(payload []byte)
	listener net.Listener
	children []net.Conn
	frame    []byte // the root's, used again
	pending  []byte // a message whose segments are coming in, if there are several

	mu      sync.Mutex
	parent  net.Conn
	closed  bool
	reading sync.WaitGroup

	frames, bytes atomic.Uint64
}

func startBare(form func(members int) (topology.Tree, error)) func(memberConfig, *receiver) (member, error) {
	return func(s memberConfig, r *receiver) (member, error) {
		tree, err := form(len(s.addresses))
		if err != nil {
			return nil, err
		}
		return newBare(tree, s, r.take), nil
	}
}

// newBare connects a member to its children. All live members listen already.
func newBare(tree topology.Tree, s memberConfig, deliver func(payload []byte)) *bareMember {
	p := &bareMember{deliver: deliver, listener: s.listener}
	for i := 0; ; i++ {
		child, ok := tree.Child(protocol.Rank(s.rank), i)
		if !ok {
			break
		}
		conn, err := net.DialTimeout("tcp", s.addresses[child], 5*time.Second)
		switch {
		case err != nil:
			continue // dead
		case conn.LocalAddr().String() == conn.RemoteAddr().String():
			conn.Close() // a free port may be connected to itself
			continue
		}
		p.children = append(p.children, conn)
	}
	if s.rank != 0 {
		p.reading.Go(p.read)
	}
	return p
}

// Bare is a member of the bare tree, for other benchmarks.
type Bare struct{ member *bareMember }

// StartBare starts a member of the bare tree. It hands messages over from one goroutine,
// and finally closes the listener.
func StartBare(rank int, addresses []string, listener net.Listener, deliver func(payload []byte)) (*Bare, error) {
	tree, err := binomial(len(addresses))
	if err != nil {
		return nil, err
	}
	return &Bare{newBare(tree, memberConfig{rank: rank, addresses: addresses, listener: listener}, deliver)}, nil
}

// Broadcast has the root send.
func (b *Bare) Broadcast(_ context.Context, payload []byte) error {
	b.member.send(payload)
	return nil
}

// Received is how many frames the member has received.
func (b *Bare) Received() uint64 { return b.member.frames.Load() }

// Close ends the member.
func (b *Bare) Close() error { return b.member.close() }

// read forwards what the parent sends, and takes it.
func (p *bareMember) read() {
	parent, err := p.listener.Accept()
	if err != nil || !p.adopt(parent) {
		return
	}
	buffer := make([]byte, lengthSize+headSize+leftSize+segmentSize+joined)
	for end := 0; ; {
		n, err := parent.Read(buffer[end:])
		if err != nil {
			return
		}
		end += n
		whole := wholeFrames(buffer[:end])
		p.write(buffer[:whole])
		p.take(buffer[:whole])
		end = copy(buffer, buffer[whole:end])
	}
}

// adopt keeps the connection to the parent, unless the member is closed.
func (p *bareMember) adopt(parent net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		parent.Close()
		return false
	}
	p.parent = parent
	return true
}

// write writes frames to all children. One that fails is dead.
func (p *bareMember) write(frames []byte) {
	if len(frames) == 0 {
		return
	}
	for _, child := range p.children {
		_, _ = child.Write(frames)
	}
}

// take hands over the messages in frames.
func (p *bareMember) take(frames []byte) {
	for len(frames) > 0 {
		size := lengthSize + int(binary.BigEndian.Uint32(frames))
		more, segment := frames[lengthSize] != 0, frames[lengthSize+headSize:size]
		frames = frames[size:]
		p.frames.Add(1)
		p.bytes.Add(uint64(size))
		switch {
		case more:
			p.pending = append(p.pending, segment[leftSize:]...)
		case len(p.pending) > 0:
			p.deliver(append(p.pending, segment...))
			p.pending = p.pending[:0]
		default:
			p.deliver(segment)
		}
	}
}

// wholeFrames is how much of b is whole frames.
func wholeFrames(b []byte) int {
	whole := 0
	for len(b)-whole >= lengthSize {
		size := lengthSize + int(binary.BigEndian.Uint32(b[whole:]))
		if len(b)-whole < size {
			break
		}
		whole += size
	}
	return whole
}

// appendMessage writes a message as frames.
func appendMessage(dst, payload []byte) []byte {
	for first := true; first || len(payload) > 0; first = false {
		segment := payload[:min(len(payload), segmentSize)]
		payload = payload[len(segment):]
		var head [headSize + leftSize]byte
		used := headSize
		if len(payload) > 0 {
			head[0] = 1 // further segments follow
			used += leftSize
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(used+len(segment)))
		dst = append(append(dst, head[:used]...), segment...)
	}
	return dst
}

// broadcast hands each message to the system before the next one, as
// Pleach's Broadcast does. Only members that forward frames join them.
func (p *bareMember) broadcast(_ context.Context, payload []byte, first uint64, times int) error {
	for i := range times {
		stamp(payload, first+uint64(i))
		p.send(payload)
	}
	return nil
}

// send writes a message to all children.
func (p *bareMember) send(payload []byte) {
	p.frame = appendMessage(p.frame[:0], payload)
	p.write(p.frame)
}

func (p *bareMember) counts() counts {
	return counts{frames: p.frames.Load(), bytes: p.bytes.Load()}
}

func (p *bareMember) close() error {
	p.mu.Lock()
	p.closed = true
	parent := p.parent
	p.mu.Unlock()
	err := p.listener.Close()
	if parent != nil {
		parent.Close()
	}
	for _, child := range p.children {
		child.Close()
	}
	p.reading.Wait()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}
