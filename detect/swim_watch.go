package detect

import (
	"math/rand/v2"
	"net"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// checkInterval is how often contacts are looked at though nothing has happened, and
// how often somebody who is missing is sought. Seeking one at a time keeps a
// group that starts from being flooded: with the first who is found come those
// it knows.
const checkInterval = time.Second

// run compares those watched with those met, until the end.
func (s *SWIM) run() {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	var rejoined time.Time
	for {
		missing := s.check()
		if len(missing) > 0 && time.Since(rejoined) >= checkInterval*9/10 {
			rejoined = time.Now()
			s.rejoin(missing[rand.IntN(len(missing))])
		}
		select {
		case <-s.changed:
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// check goes through those watched. It returns addresses where to seek those who
// are missing, and the seeds as long as nobody has been found.
func (s *SWIM) check() (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, p := range s.peers {
		c, met := s.nodes[p.Rank]
		switch {
		case met && c.alive:
			found = s.tracker.met(p.Rank, c.incarnation) || found
			continue
		case met:
			s.confirm(p.Rank, c)
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

// confirm has a peer whom memberlist holds dead asked once more, unless it is
// suspected already or a process of long ago. Called with mu held.
func (s *SWIM) confirm(rank protocol.Rank, c node) {
	p, _ := s.tracker.watched(rank)
	if p.Incarnation == 0 {
		s.tracker.met(rank, c.incarnation)
		p.Incarnation = c.incarnation
	}
	if p.Incarnation != c.incarnation || s.confirming[rank] || s.tracker.suspicion(p) != nil {
		return
	}
	s.confirming[rank] = true
	s.running.Go(func() {
		err := s.ping(rank, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.confirming, rank)
		if now := s.nodes[rank]; err != nil && !now.alive && now.incarnation == c.incarnation {
			s.tracker.suspect(p, ErrSilent, err)
		}
	})
}

// ping pings a peer, a second time if the first is not answered. It returns an
// error if neither is.
func (s *SWIM) ping(rank protocol.Rank, c node) error {
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
	for rank, c := range s.nodes {
		if _, watched := s.tracker.watched(rank); !watched && !c.alive && time.Since(c.died) > forgetAfter {
			delete(s.nodes, rank)
		}
	}
}

// rejoin exchanges lists with whoever is at an address. Close does not wait for
// it: it is bounded, and only takes notes.
func (s *SWIM) rejoin(address string) {
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
