package relay

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// strange is a machine that gets anything, in any order.
type strange struct {
	*rapid.T
	*Machine
	now  Time
	next map[Origin]uint64 // the next message of each origin for the program
}

var (
	strangeZones   = []string{"a", "b", "c"}
	strangeOrigins = []Origin{{"a", "x", 2}, {"a", "y", 2}, {"b", "x", 1}, {"b", "y", 3}, {"c", "x", 1}}
)

func (s *strange) zones(what string) []string {
	return rapid.SliceOfDistinct(rapid.SampledFrom(strangeZones), rapid.ID).Draw(s.T, what)
}

// frame draws a frame of a kind.
func (s *strange) frame(kinds ...kind) []byte {
	seq := rapid.Uint64Range(0, 8)
	f := &frame{kind: rapid.SampledFrom(kinds).Draw(s.T, "kind")}
	switch f.kind {
	case kindData, kindLost:
		f.origin, f.seq = rapid.SampledFrom(strangeOrigins).Draw(s.T, "origin"), seq.Draw(s.T, "seq")
		if f.kind == kindData {
			f.data = make([]byte, rapid.IntRange(0, 40).Draw(s.T, "length"))
		}
	case kindSummary:
		f.summaries = []Summary{{
			Zone:    rapid.SampledFrom(strangeZones).Draw(s.T, "zone"),
			Members: int(seq.Draw(s.T, "members")),
		}}
	default:
		f.zone, f.zones, f.covers = rapid.SampledFrom(strangeZones).Draw(s.T, "zone"), s.zones("zones"), s.zones("covers")
		f.born = seq.Draw(s.T, "born")
		for _, o := range rapid.SliceOfDistinct(rapid.SampledFrom(strangeOrigins), rapid.ID).Draw(s.T, "origins") {
			f.positions = append(f.positions, position{o, seq.Draw(s.T, "seq"), seq.Draw(s.T, "acked")})
		}
	}
	return f.encode()
}

// peers draws a view of the backbone: two delegates of each zone at most.
func (s *strange) peers() (peers []Peer) {
	for z, zone := range strangeZones {
		for r := range rapid.IntRange(0, 2).Draw(s.T, zone) {
			peers = append(peers, Peer{
				Rank: 2*z + r, Zone: zone, Age: uint64(r),
				Born: rapid.Uint64Range(0, 3).Draw(s.T, "born"),
			})
		}
	}
	return peers
}

// input gives the machine one of its inputs.
func (s *strange) input() {
	rank := rapid.IntRange(0, 5).Draw(s.T, "rank")
	switch rapid.IntRange(0, 10).Draw(s.T, "input") {
	case 0, 1:
		_ = s.FromZone(s.now, rank, s.frame(kindData, kindLost, kindBase, kindWatermark, kindSummary))
	case 2, 3, 4:
		_ = s.FromPeer(s.now, rank, s.frame(kindData, kindLost, kindBase, kindSync, kindReply, kindAck, kindSummary))
	case 5:
		_ = s.Fetched(s.now, s.frame(kindData, kindLost, kindBase))
	case 6:
		_ = s.Forwarded(s.now, rank, s.frame(kindData))
	case 7:
		s.Broadcast(s.now, "", []byte("data"))
	case 8:
		s.SetZone(s.now, []Sibling{{0, 0}, {1, 1}}[rapid.IntRange(0, 1).Draw(s.T, "first"):],
			rapid.IntRange(0, 1).Draw(s.T, "self"))
		s.SetBackbone(s.now, s.peers())
	case 9:
		s.Dropped(s.now, rank)
		s.Stable(s.now, rapid.Bool().Draw(s.T, "stable"))
	case 10:
		s.SetSummary(s.now, Summary{Zone: "a", Members: rapid.IntRange(1, 3).Draw(s.T, "members")})
	}
}

// wait lets time pass until the machine wants to be called. After some calls there is nothing to
// do at that time.
func (s *strange) wait() {
	for range rapid.IntRange(0, 3).Draw(s.T, "deadlines") {
		due := s.Deadline()
		if due < 0 || due == never {
			return
		}
		s.now = max(s.now, due)
		for range 3 { // what it does may be followed by more
			s.Tick(s.now)
			s.Actions()
		}
		if next := s.Deadline(); next >= 0 && next <= s.now {
			s.Fatalf("at %d, the deadline is %d", s.now, next)
		}
	}
}

// check judges the accounts of the machine, and what the program gets.
func (s *strange) check() error {
	for _, m := range s.Delivered() {
		if next := s.next[m.Origin]; next > 0 && m.Seq-m.Lost != next && !s.forgot {
			return fmt.Errorf("message %d of %v comes after %d, and %d are lost", m.Seq, m.Origin, next-1, m.Lost)
		}
		s.next[m.Origin] = m.Seq + 1
		if m.Lost > 0 {
			s.next[m.Origin] = m.Seq
		}
	}
	if err := s.journal.invariant(); err != nil {
		return err
	}
	return s.shipping.invariant()
}

// Whatever comes, the accounts of a member agree with what it has, its program gets the messages
// of an origin in order, and it comes to rest.
func TestStrangeInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &strange{T: t, now: 1e6, next: make(map[Origin]uint64), Machine: New(Config{
			Self: strangeOrigins[0], Born: 2, KeepBytes: 6 * entryOverhead, MaxOrigins: rapid.IntRange(3, 7).Draw(t, "origins"),
			Window:   3 * entryOverhead,
			AckDelay: 10, AckBytes: 1 << 15, WatermarkDelay: 15, Stall: 100, Patience: 300, GapDelay: 50, ForwardDelay: 5,
		})}
		s.Begin(s.now)
		s.SetZone(s.now, []Sibling{{0, 0}, {1, 1}}, 0)
		s.SetBackbone(s.now, s.peers())
		for range rapid.IntRange(1, 40).Draw(t, "inputs") {
			s.now++
			s.input()
			s.Actions()
			s.wait()
			if err := s.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
