package detect

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/protocol"
)

// SWIM suspects peers that have fallen silent. Members ask each other all the
// time, directly and through others, over a port of their own; this is
// hashicorp/memberlist, an implementation of SWIM with Lifeguard, used as a
// detector and for nothing else.
//
// Whom memberlist holds dead is asked once more before it is suspected. News of
// a death may come from a member that was itself stopped and goes on with old
// timers, and such a one must not cost healthy members their place.
//
// A peer that was never met is not suspected. SWIM only reports; it removes
// nobody. Make one with [NewSWIM].
type SWIM struct {
	config  SWIMConfig
	tracker *tracker
	changed chan struct{} // Holds one: a look is due.
	slots   chan struct{} // Holds one for each ping under way.
	ctx     context.Context
	cancel  context.CancelFunc

	life    sync.Mutex // Held while it is started or closed.
	list    *memberlist.Memberlist
	limits  *memberlist.Config
	running sync.WaitGroup

	mu         sync.Mutex // Guards the rest. Memberlist is never called under it.
	peers      []Peer
	nodes      map[protocol.Rank]node
	confirming map[protocol.Rank]bool // Those being asked once more.
	joining    bool
}

var _ Detector = (*SWIM)(nil)

// maxPings is how many peers are asked once more at a time.
const maxPings = 64

// NewSWIM makes a detector. It opens its port when it is started.
func NewSWIM(config SWIMConfig) *SWIM {
	s := &SWIM{
		config:     config,
		tracker:    newTracker(),
		changed:    make(chan struct{}, 1),
		slots:      make(chan struct{}, maxPings),
		nodes:      map[protocol.Rank]node{},
		confirming: map[protocol.Rank]bool{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start opens the port and begins to ask and to report.
func (s *SWIM) Start(report func(Report)) error {
	s.life.Lock()
	defer s.life.Unlock()
	if err := s.tracker.start(report); err != nil {
		return err
	}
	config, err := s.config.list()
	if err == nil {
		config.Alive, config.Events = membersOnly{}, (*events)(s)
		s.limits = config
		s.list, err = create(config)
	}
	if err != nil {
		s.tracker.close()
		return fmt.Errorf("detect: SWIM of rank %d: %w", s.config.Rank, err)
	}
	s.running.Go(s.run)
	return nil
}

// Address returns the "host:port" at which others reach this detector, once it
// has been started.
func (s *SWIM) Address() string {
	s.life.Lock()
	defer s.life.Unlock()
	if s.list == nil {
		return ""
	}
	n := s.list.LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// Watch sets who is watched.
func (s *SWIM) Watch(peers []Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers = append([]Peer(nil), peers...)
	s.tracker.watch(peers)
	s.wake()
}

// Close ends the detector without a word to others: to them this member falls
// silent. Goroutines of memberlist's end by themselves, soon after.
func (s *SWIM) Close() error {
	s.cancel()
	s.life.Lock()
	defer s.life.Unlock()
	s.running.Wait()
	s.tracker.close()
	if s.list == nil {
		return nil
	}
	return s.list.Shutdown()
}
