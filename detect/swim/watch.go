package swim

// This file compares the peers of the view with the nodes that memberlist has met:
// it looks for peers that are missing, and confirms deaths before it reports them.

import (
	"math/rand/v2"
	"net"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/protocol"
)

// checkInterval is how often peers are checked without an event, and how often
// the detector contacts a missing peer. Contacting one at a time keeps a starting
// group from being flooded: the first peer found brings the nodes it knows.
const checkInterval = time.Second

// run checks the peers until Close.
func (s *Detector) run() {
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

// check compares each peer with its node. It returns the addresses of missing
// peers, and the seeds as long as no peer has been met.
func (s *Detector) check() (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, alone := false, true
	for p := range s.peers.Since(nil) {
		alone = false
		c, met := s.nodes[p.Rank]
		switch {
		case met && c.alive:
			found = s.tracker.Met(p.Rank, c.incarnation) || found
			continue
		case met:
			s.confirm(p.Rank, c)
			missing = append(missing, c.address)
		}
		if address := s.config.peerAddress(p); address != "" && address != c.address {
			missing = append(missing, address)
		}
	}
	s.forget()
	if !found && !alone {
		missing = append(missing, s.config.Seeds...)
	}
	return missing
}

// confirm pings a peer that memberlist has declared dead, and suspects it if no
// answer comes. It does nothing if the peer is suspected already or the node is
// not the process of the view. The caller holds mu.
func (s *Detector) confirm(rank protocol.Rank, c node) {
	p, _ := s.tracker.Watched(rank)
	if p.Incarnation == 0 {
		s.tracker.Met(rank, c.incarnation)
		p.Incarnation = c.incarnation
	}
	if p.Incarnation != c.incarnation || s.confirming[rank] || s.tracker.Suspicion(p) != nil {
		return
	}
	s.confirming[rank] = true
	s.running.Go(func() {
		err := s.ping(rank, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.confirming, rank)
		if now := s.nodes[rank]; err != nil && !now.alive && now.incarnation == c.incarnation {
			s.tracker.Suspect(p, detect.ErrSilent, err)
		}
	})
}

// ping pings a peer, and once more if there is no answer. It returns an error if
// neither ping is answered.
func (s *Detector) ping(rank protocol.Rank, c node) error {
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
			return nil // A live peer refutes its death to the others itself.
		}
		// As with detect.Connections, a ping that took far too long says only that
		// this process was stopped or starved.
		if time.Since(start) < 2*s.limits.ProbeTimeout {
			unanswered++
		}
	}
	return err
}

// forget drops dead nodes that are not watched. The caller holds mu.
func (s *Detector) forget() {
	for rank, c := range s.nodes {
		if _, watched := s.tracker.Watched(rank); !watched && !c.alive && time.Since(c.died) > forgetAfter {
			delete(s.nodes, rank)
		}
	}
}

// rejoin exchanges member lists with the detector at an address. Close does not
// wait for it: it takes a bounded time and only takes notes.
func (s *Detector) rejoin(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joining {
		return
	}
	s.joining = true
	go func() {
		_, _ = s.list.Join([]string{address}) // If it fails, another peer is tried.
		s.mu.Lock()
		s.joining = false
		s.mu.Unlock()
	}()
}
