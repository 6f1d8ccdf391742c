package fleet

import (
	"context"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// lane is the way to another delegate. Acknowledgments and positions overtake messages, of
// which there may be megabytes: a lead that gets none ships again. Frames that wait go
// together.
type lane struct {
	life   context.Context // ends when the delegate is gone
	end    context.CancelFunc
	urgent *queue[[]byte]
	frames *queue[[]byte]
	news   chan struct{} // something waits
}

func newLane(life context.Context) *lane {
	l := &lane{news: make(chan struct{}, 1)}
	l.life, l.end = context.WithCancel(life)
	size := func(b []byte) int { return len(b) }
	l.urgent, l.frames = newQueue(l.life, 2*linkWindow, size), newQueue(l.life, 2*linkWindow, size)
	return l
}

// next returns the frames to send next, in room if they fit.
func (l *lane) next(room []byte) []byte {
	batch := room[:0]
	fits := func(frame []byte) bool { return len(batch) == 0 || len(batch)+len(frame) <= maxBatch }
	for _, q := range []*queue[[]byte]{l.urgent, l.frames} {
		for frame, ok := q.more(fits); ok; frame, ok = q.more(fits) {
			batch = append(batch, frame...)
		}
	}
	return batch
}

// send sends a frame to another delegate. It does not wait: a delegate that does not
// receive must not delay what others get. A frame that cannot be sent, because too much
// waits before it or there is no quorum, is dropped and reported to the machine. The caller
// holds the fleet's lock.
func (s *session) send(a relay.Send) {
	rank := a.Peer.Rank
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[rank]
	if l == nil {
		l = newLane(s.life)
		s.lanes[rank] = l
		s.fleet.running.Go(func() { s.carry(rank, l) })
	}
	q := l.frames
	if a.Urgent {
		q = l.urgent
	}
	if q.full() {
		s.fleet.machine.Dropped(s.fleet.now(), rank)
		return
	}
	q.add(a.Frame)
	signal(l.news)
}

// carry sends what waits for a delegate, as much as there is together.
func (s *session) carry(rank int, l *lane) {
	room := make([]byte, 0, maxBatch)
	for l.life.Err() == nil {
		batch := l.next(room)
		if len(batch) == 0 {
			select {
			case <-l.news:
			case <-l.life.Done():
			}
			continue
		}
		if s.group.Send(l.life, pleach.Member{Rank: rank}, batch) != nil {
			s.fleet.step(func(now relay.Time) { s.fleet.machine.Dropped(now, rank) })
			sleep(l.life, retryDelay)
		}
	}
}
