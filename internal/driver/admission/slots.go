package admission

import (
	"context"
	"sync"
)

// Slots bounds work for processes that have proved nothing yet. One host has half of the
// slots at most, so that the others never wait for it alone.
type Slots struct {
	all chan struct{}

	mu    sync.Mutex
	hosts map[string]*share
}

// share is the part of the slots that a host may have.
type share struct {
	slots chan struct{}
	users int // that have a slot, or wait for one
}

// NewSlots returns slots for so many at a time.
func NewSlots(limit int) *Slots {
	return &Slots{all: make(chan struct{}, limit), hosts: make(map[string]*share)}
}

// Enter waits for a slot, and returns what gives it back. It gives up when the context
// ends: work ends with its client.
func (s *Slots) Enter(ctx context.Context, address string) (leave func(), err error) {
	host := HostOf(address)
	h := s.use(host)
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		s.unuse(host, h)
		return nil, ctx.Err()
	}
	free := func() {
		<-h.slots
		s.unuse(host, h)
	}
	select {
	case s.all <- struct{}{}:
		return func() { <-s.all; free() }, nil
	case <-ctx.Done():
		free()
		return nil, ctx.Err()
	}
}

func (s *Slots) use(host string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		h = &share{slots: make(chan struct{}, max(1, cap(s.all)/2))}
		s.hosts[host] = h
	}
	h.users++
	return h
}

func (s *Slots) unuse(host string, h *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.users--
	if h.users == 0 {
		delete(s.hosts, host)
	}
}
