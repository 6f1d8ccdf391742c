package detect

import (
	"math/rand/v2"
	"net"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// lookEvery is how often contacts are looked at though nothing has happened, and
// how often somebody who is missing is sought. Seeking one at a time keeps a
// group that starts from being flooded: with the first who is found come those
// it knows.
const lookEvery = time.Second

// run compares those watched with those met, until the end.
func (s *SWIM) run() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var sought time.Time
	for {
		missing := s.look()
		if len(missing) > 0 && time.Since(sought) >= lookEvery*9/10 {
			sought = time.Now()
			s.seek(missing[rand.IntN(len(missing))])
		}
		select {
		case <-s.wake:
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// look goes through those watched. It returns addresses where to seek those who
// are missing, and the seeds as long as nobody has been found.
func (s *SWIM) look() (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, p := range s.peers {
		c, met := s.contacts[p.Rank]
		switch {
		case met && c.alive:
			found = s.herald.met(p.Rank, c.incarnation) || found
			continue
		case met:
			s.doubt(p.Rank, c)
			missing = append(missing, c.address)
		}
		if p.SWIM != "" && p.SWIM != c.address {
			missing = append(missing, p.SWIM)
		}
	}
	s.forget()
	if !found && len(s.peers) > 0 {
		missing = append(missing, s.config.Seeds...)
	}
	return missing
}

// doubt has a peer whom memberlist holds dead asked once more, unless it is
// suspected already or a process of long ago. Called with mu held.
func (s *SWIM) doubt(rank protocol.Rank, c contact) {
	p, _ := s.herald.watched(rank)
	if p.Incarnation == 0 {
		s.herald.met(rank, c.incarnation)
		p.Incarnation = c.incarnation
	}
	if p.Incarnation != c.incarnation || s.asking[rank] || s.herald.suspicion(p) != nil {
		return
	}
	s.asking[rank] = true
	s.running.Go(func() {
		err := s.ask(rank, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asking, rank)
		if now := s.contacts[rank]; err != nil && !now.alive && now.incarnation == c.incarnation {
			s.herald.suspect(p, ErrSilent, err)
		}
	})
}

// ask pings a peer, a second time if the first is not answered. It returns an
// error if neither is.
func (s *SWIM) ask(rank protocol.Rank, c contact) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.ctx.Done():
		return nil
	}
	address, err := net.ResolveUDPAddr("udp", c.address)
	if err != nil {
		return err
	}
	for unanswered := 0; unanswered < 2; {
		start := time.Now()
		_, err = s.list.Ping(nodeName(rank, c.incarnation), address)
		if err == nil || s.ctx.Err() != nil {
			return nil // If it is alive, it will tell the others too.
		}
		// As with [Connections], a ping that took far too long says something
		// about this process only.
		if time.Since(start) < 2*s.limits.ProbeTimeout {
			unanswered++
		}
	}
	return err
}

// forget lets go of the dead that nobody watches. Called with mu held.
func (s *SWIM) forget() {
	for rank, c := range s.contacts {
		if _, watched := s.herald.watched(rank); !watched && !c.alive && time.Since(c.died) > forgetAfter {
			delete(s.contacts, rank)
		}
	}
}

// seek exchanges lists with whoever is at an address. Close does not wait for
// it: it is bounded, and only takes notes.
func (s *SWIM) seek(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joining {
		return
	}
	s.joining = true
	go func() {
		_, _ = s.list.Join([]string{address}) // If nobody is there, another is sought.
		s.mu.Lock()
		s.joining = false
		s.mu.Unlock()
	}()
}
