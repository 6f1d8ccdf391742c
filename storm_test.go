package pleach

// A storm is more load than the host carries, with deaths and joins in it. What comes
// after it must be as what was before: a group whose members react to overload with more
// work stays overloaded when the load is gone. That is a metastable failure (Bronson et
// al., "Metastable Failures in Distributed Systems", HotOS 2021).

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// What a storm is made of, and what must hold after it.
const (
	stormKills, stormJoins, stormRoots = 10, 20, 4

	stormLoad = 3 // times what the processors carry
	stormSize = 1 << 10
	// stormBytes bounds what is in flight when the programs stop to broadcast: all
	// members share two processors, so that the usual megabytes would be many seconds' work.
	stormBytes = 256 << 10

	stormViewLimit   = 10 * time.Second // until all have one view
	stormNormalLimit = 15 * time.Second // until a broadcast costs what it did
	stormCosts       = 1.15             // times as much as before
	stormIdle        = 2 * time.Second  // how long an idle group is measured
	stormSample      = 20               // broadcasts whose cost is measured together
)

// After three times the load that the processors carry, with kills and joins, no live
// member was removed, all are in one view within 10 s, and within 15 s a broadcast costs
// what it did before. The members are real ones. Their clock and their processors are
// simulated, so that the test asks for the same on any host.
func TestStorm(t *testing.T) {
	members, seconds := testutil.Members.Or(64), testutil.Seconds.OrFloat(5)
	first := testutil.Seed.Or(1)
	for seed := first; seed < first+testutil.Seeds.Or(1); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("again: PLEACH_MEMBERS=%d PLEACH_SECONDS=%g PLEACH_SEED=%d go test -count=1 -timeout 0 -run '^TestStorm$' -v .", members, seconds, seed)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				newStorm(t, members, uint64(seed)).run(time.Duration(seconds * float64(time.Second)))
			})
		})
	}
}

// storm is a group and what happens to it.
type storm struct {
	t   *testing.T
	net *stormNetwork
	ctx context.Context

	mu      sync.Mutex
	idle    stormCost // in a second
	rng     *rand.Rand
	live    []*stormMember
	joining int

	lost  atomic.Int64
	calm  atomic.Uint64 // the number of the measured broadcast
	heard atomic.Int64  // members that have it
	sent  atomic.Int64  // broadcasts of the storm
	got   atomic.Int64  // what members have got of them
}

// stormMember is one live process.
type stormMember struct {
	*Group
	transport *stormTransport
}

// stormCost is what a broadcast costs each member.
type stormCost struct {
	messages, cpu float64 // cpu in µs
}

func stormLimits() Limits {
	return Limits{KeepBytes: stormBytes, InboxBytes: stormBytes, OutboxBytes: stormBytes}
}

// newStorm starts the group.
func newStorm(t *testing.T, members int, seed uint64) *storm {
	s := &storm{
		t: t, ctx: t.Context(), rng: rand.New(rand.NewPCG(seed, 0x5707)),
		net: newStormNetwork(members + stormJoins),
	}
	c := Config{
		Group: "storm", OnMessage: s.receive, Detection: Detection{StartTimeout: time.Minute},
		Limits: stormLimits(),
	}
	transports := make([]*stormTransport, members)
	for r := range transports {
		socket := stormSocket(t)
		transports[r] = s.net.open(protocol.Rank(r), member.FirstIncarnation, socket)
		c.Addresses = append(c.Addresses, socket.Addr().String())
	}
	t.Cleanup(s.end)
	for r, transport := range transports {
		c.Rank, c.Network.Transport = r, transport
		g, err := Start(s.ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		s.live = append(s.live, &stormMember{g, transport})
	}
	return s
}

// end ends all members at once.
func (s *storm) end() {
	var ending sync.WaitGroup
	for _, m := range s.live {
		ending.Go(func() { _ = m.Abort() })
	}
	ending.Wait()
}

// receive is the program of every member.
func (s *storm) receive(m Message, err error) {
	if lost := new(LostError); errors.As(err, &lost) {
		s.lost.Add(int64(lost.Count))
	}
	if number, err := strconv.ParseUint(string(m.Data), 10, 64); err == nil && number == s.calm.Load() {
		s.heard.Add(1)
		return
	}
	s.got.Add(1)
}

// run has a storm and checks what comes after it.
func (s *storm) run(length time.Duration) {
	s.measure() // members meet
	s.measureIdle()
	before, _ := s.measure()
	began, used := time.Now(), s.net.cpu.used()
	s.rage(length)
	over := time.Now()
	busy := float64(stormLoad*(s.net.cpu.used()-used)) / float64(len(s.net.cpu.free)) / float64(over.Sub(began))
	inView := s.awaitOneView(over)
	after, normal := s.awaitNormal(before, over)
	line, _ := json.Marshal(map[string]any{
		"members": len(s.live), "seconds": round(over.Sub(began).Seconds(), 2), "busy": round(busy, 2), "sent": s.sent.Load(),
		"received": s.got.Load(), "lost": s.lost.Load(),
		"views": s.live[0].View().Number, "one_view_ms": inView.Milliseconds(), "normal_ms": normal.Milliseconds(),
		"messages_before": round(before.messages, 2), "messages_after": round(after.messages, 2),
		"cpu_us_before": round(before.cpu, 1), "cpu_us_after": round(after.cpu, 1),
	})
	s.t.Log(string(line))
	if s.lost.Load() > 0 {
		s.t.Errorf("%d messages lost", s.lost.Load())
	}
}

// measure measures what a broadcast of the lowest rank costs, without what a group did
// when it was idle before the storm. It reports whether all members have got every one.
func (s *storm) measure() (c stormCost, complete bool) {
	root, others := s.live[0], int64(len(s.live)-1)
	frames, cpu, began := s.net.frames.Load(), s.net.cpu.used(), time.Now()
	for range stormSample {
		s.heard.Store(0)
		if err := root.Broadcast(s.ctx, strconv.AppendUint(nil, s.calm.Add(1), 10)); err != nil {
			s.t.Fatal(err)
		}
		for s.heard.Load() < others {
			if time.Since(began) > stormNormalLimit {
				return c, false
			}
			testutil.Advance(100 * time.Microsecond)
		}
	}
	testutil.Advance(stormIdle)                                // what corrections still do counts
	idle := time.Since(began).Seconds() * float64(len(s.live)) // of all members
	each := float64(stormSample * len(s.live))
	return stormCost{
		messages: (float64(s.net.frames.Load()-frames) - idle*s.idle.messages) / each,
		cpu:      (float64((s.net.cpu.used() - cpu).Microseconds()) - idle*s.idle.cpu) / each,
	}, true
}

// measureIdle measures what a member costs in a second in which nothing is sent.
func (s *storm) measureIdle() {
	frames, cpu := s.net.frames.Load(), s.net.cpu.used()
	testutil.Advance(stormIdle)
	each := stormIdle.Seconds() * float64(len(s.live))
	s.idle = stormCost{float64(s.net.frames.Load()-frames) / each, float64((s.net.cpu.used() - cpu).Microseconds()) / each}
}

// rage is the storm: broadcasts at full rate keep all processors busy, and other work
// asks for twice as much again. Members die and join at random times.
func (s *storm) rage(length time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, length)
	defer cancel()
	s.net.cpu.setLoad(stormLoad)
	defer s.net.cpu.setLoad(1)
	var raging sync.WaitGroup
	for _, i := range s.rng.Perm(len(s.live))[:stormRoots] {
		root := s.live[i]
		raging.Go(func() {
			for ctx.Err() == nil {
				if root.Broadcast(ctx, make([]byte, stormSize)) != nil {
					time.Sleep(10 * time.Millisecond) // it is dead, or has no quorum
					continue
				}
				s.sent.Add(1)
			}
		})
	}
	times := make([]time.Duration, stormKills+stormJoins) // before the first event draws, too
	for i := range times {
		times[i] = time.Duration(s.rng.Float64() * float64(length))
	}
	for i, at := range times {
		event := s.kill
		if i >= stormKills {
			event = s.join
		}
		raging.Go(func() {
			time.Sleep(at)
			event()
		})
	}
	raging.Wait()
}

// kill kills a random member.
func (s *storm) kill() {
	s.mu.Lock()
	i := s.rng.IntN(len(s.live))
	m := s.live[i]
	s.live = slices.Delete(s.live, i, i+1)
	s.mu.Unlock()
	m.transport.kill()
	_ = m.Abort()
}

// join has a process ask a random member for a place in the group, and another one if that
// dies meanwhile, as Join does over TCP. The process runs in the background until it is a
// member.
func (s *storm) join() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joining++
	socket := stormSocket(s.t)
	candidate := membership.Member{
		Identity: socket.Addr().String(), Address: socket.Addr().String(),
		Nonce: s.rng.Uint64() | 1, Version: wire.Newest(),
	}
	go func() {
		answer := s.admit(candidate)
		if answer.Err != nil {
			return // the test is over
		}
		self, _ := answer.View.Member(answer.Rank)
		transport := s.net.open(answer.Rank, self.Incarnation, socket)
		c := Config{
			Group: "storm", OnMessage: s.receive, Network: Network{Transport: transport}, Limits: stormLimits(),
			Logger: slog.New(slog.DiscardHandler),
		}
		g := newGroup(c)
		err := g.enter(c, &initialState{
			transport: transport, self: self, view: answer.View, start: answer.Start,
			decisions: answer.Decisions,
		}, nil, nil)
		if err != nil {
			s.t.Errorf("%s does not start: %v", candidate.Identity, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live = append(s.live, &stormMember{g, transport})
		s.joining--
	}()
}

// admit returns the answer to a candidate.
func (s *storm) admit(candidate membership.Member) member.JoinAnswer {
	for {
		s.mu.Lock()
		seed := s.live[s.rng.IntN(len(s.live))]
		s.mu.Unlock()
		answers := make(chan member.JoinAnswer, 1)
		_ = seed.session().node.Do(func(now protocol.Time) {
			seed.session().machine.Join(now, candidate, false, func(a member.JoinAnswer) { answers <- a })
		})
		select {
		case a := <-answers:
			if a.Err == nil {
				return a
			}
		case <-seed.session().life.Done():
		case <-s.ctx.Done():
			return member.JoinAnswer{Err: s.ctx.Err()}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitOneView waits until all live members have one view of just them.
func (s *storm) awaitOneView(over time.Time) time.Duration {
	var err error
	one := func() bool {
		err = s.oneView()
		return err == nil
	}
	if !testutil.Within(stormViewLimit-time.Since(over), one) {
		s.logMissing()
		s.t.Fatalf("%v after the storm: %v", stormViewLimit, err)
	}
	return time.Since(over)
}

// oneView says why live members are not in one view of just them.
func (s *storm) oneView() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.live {
		if err := m.Err(); err != nil && !errors.Is(err, ErrNoQuorum) {
			s.t.Fatalf("rank %d is alive and no member any more: %v", m.Rank(), err)
		}
	}
	first := s.live[0].View()
	for _, m := range s.live {
		if v := m.View(); v.Number != first.Number || len(v.Members()) != len(s.live) {
			return fmt.Errorf("rank %d is in view %d of %d members and rank %d in view %d of %d; %d are alive, and %d join",
				m.Rank(), v.Number, len(v.Members()), s.live[0].Rank(), first.Number, len(first.Members()), len(s.live), s.joining)
		}
	}
	if s.joining > 0 {
		return fmt.Errorf("%d still join", s.joining)
	}
	return nil
}

// logMissing logs which live members are not in the first one's view, in which view they
// are, and what that view's member knows about them.
func (s *storm) logMissing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.live[0].Status()
	for _, m := range s.live {
		if _, ok := s.live[0].View().Member(m.Rank()); ok {
			continue
		}
		s.t.Logf("rank %d, %s, is in view %d: %v", m.Rank(), m.Self().ID, m.View().Number, m.Err())
		for _, v := range status.History {
			for _, c := range v.Changes {
				if c.Rank == m.Rank() {
					s.t.Logf("view %d at %v: %+v", v.Number, v.Time, c)
				}
			}
		}
	}
}

// awaitNormal measures until a broadcast costs what it did before the storm.
func (s *storm) awaitNormal(before stormCost, over time.Time) (after stormCost, took time.Duration) {
	slices.SortFunc(s.live, func(a, b *stormMember) int { return a.Rank() - b.Rank() })
	for {
		began := time.Now()
		after, complete := s.measure()
		if complete && after.messages <= before.messages*stormCosts && after.cpu <= before.cpu*stormCosts {
			return after, began.Sub(over)
		}
		if time.Since(over) > stormNormalLimit {
			s.t.Errorf("%v after the storm a broadcast costs %.2f messages and %.1f µs for each member, before it %.2f and %.1f",
				stormNormalLimit, after.messages, after.cpu, before.messages, before.cpu)
			return after, time.Since(over)
		}
	}
}

// round leaves out digits that mean nothing.
func round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(v*scale) / scale
}
