// Package swim detects silent members by the SWIM protocol (Das, Gupta &
// Motivala 2002) with the Lifeguard extensions (Dadgar, Phillips & Currey 2018).
//
// The members probe each other permanently, directly and through others, on a
// port of their own. The implementation is hashicorp/memberlist, which is used as
// a detector and for nothing else. Only this package imports it, so a program
// that does not use SWIM does not link it.
//
//	d := swim.New(swim.Config{Port: 7946})
//	pleach.Start(ctx, pleach.Config{Detectors: []detect.Detector{d}})
//
// A member that memberlist declares dead is pinged once more before it is
// suspected. The declaration may come from a member that was itself stopped and
// has resumed with expired timers; it must not cost a healthy member its rank.
package swim

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/protocol"
)

// Detector suspects peers that have fallen silent. It does not suspect a peer
// that it has never met. Make one with [New].
type Detector struct {
	config  Config
	tracker *detect.Tracker
	changed chan struct{} // Holds one: a check is due.
	slots   chan struct{} // Holds one for each ping in progress.
	ctx     context.Context
	cancel  context.CancelFunc

	life    sync.Mutex // Held during SetMember, Start and Close.
	member  detect.Member
	list    *memberlist.Memberlist
	limits  *memberlist.Config
	running sync.WaitGroup

	mu         sync.Mutex // Guards the rest. Memberlist is never called under it.
	peers      detect.Peers
	nodes      map[protocol.Rank]node
	confirming map[protocol.Rank]bool // Peers that are pinged once more.
	joining    bool
}

var (
	_ detect.Detector    = (*Detector)(nil)
	_ detect.MemberAware = (*Detector)(nil)
	_ detect.Renewer     = (*Detector)(nil)
	_ detect.KeyRotator  = (*Detector)(nil)
)

// maxPings is how many peers are pinged once more at a time.
const maxPings = 64

// New makes a detector. It opens its port in Start.
func New(config Config) *Detector {
	s := &Detector{
		config:     config,
		tracker:    detect.NewTracker(),
		peers:      detect.PeerList(nil),
		changed:    make(chan struct{}, 1),
		slots:      make(chan struct{}, maxPings),
		nodes:      map[protocol.Rank]node{},
		confirming: map[protocol.Rank]bool{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Renew implements [detect.Renewer].
func (s *Detector) Renew() detect.Detector { return New(s.config) }

// SetMember implements [detect.MemberAware].
func (s *Detector) SetMember(m detect.Member) {
	s.life.Lock()
	defer s.life.Unlock()
	s.member = m
}

// SetKeys implements [detect.KeyRotator]. [Config].Key does not change.
func (s *Detector) SetKeys(keys [][]byte) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.config.Key != nil || s.limits == nil || s.limits.Keyring == nil || len(keys) == 0 {
		return
	}
	ring := s.limits.Keyring
	for _, key := range keys {
		_ = ring.AddKey(key) // of the length that memberlist wants
	}
	_ = ring.UseKey(keys[0])
	for _, key := range ring.GetKeys() {
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			_ = ring.RemoveKey(key)
		}
	}
}

// Start opens the port and begins to probe and to report.
func (s *Detector) Start(report func(detect.Report)) error {
	s.life.Lock()
	defer s.life.Unlock()
	if err := s.tracker.Start(report); err != nil {
		return err
	}
	config, err := s.config.memberlist(&s.member)
	if err == nil {
		config.Alive, config.Events = membersOnly{}, (*events)(s)
		s.limits = config
		s.list, err = newList(config)
	}
	if err != nil {
		_ = s.tracker.Close()
		return fmt.Errorf("swim: rank %d: %w", s.member.Rank, err)
	}
	s.running.Go(s.run)
	return nil
}

// Address returns the "host:port" at which other members reach this detector. It
// is "" before Start.
func (s *Detector) Address() string {
	s.life.Lock()
	defer s.life.Unlock()
	if s.list == nil {
		return ""
	}
	n := s.list.LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// Watch implements [detect.Detector].
func (s *Detector) Watch(peers detect.Peers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = peers
	s.tracker.Watch(peers)
	s.wake()
}

// Close stops the detector without notifying the other members: they see this
// member fall silent. Some goroutines of memberlist end shortly after Close.
func (s *Detector) Close() error {
	s.cancel()
	s.life.Lock()
	defer s.life.Unlock()
	s.running.Wait()
	_ = s.tracker.Close()
	if s.list == nil {
		return nil
	}
	return s.list.Shutdown()
}
