package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/protocol"
)

const (
	limit       = 1 << 20
	millisecond = protocol.Time(1e6)
)

// pair is two recorded members of one group on a network that loses nothing, with a driver
// like internal/node.
type pair struct {
	t       testing.TB
	now     protocol.Time
	members [2]*Recorder
	cut     bool     // nothing gets through
	saving  [2]bool  // what a member saves is not on its disk yet
	saveErr [2]error // why a member cannot save
}

func newPair(t testing.TB, change func(*pair, *member.Config)) *pair {
	t.Helper()
	p := &pair{t: t, now: 1}
	view := membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(
		membership.Member{Rank: 0, Identity: "a", Address: "a:1", Incarnation: 1},
		membership.Member{Rank: 1, Identity: "b", Address: "b:1", Incarnation: 1},
	)}
	for i := range p.members {
		c := member.Config{
			Self: *view.Members.At(i), View: view, Heartbeat: heartbeat.Config{Interval: 100 * millisecond, Timeout: 500 * millisecond},
			Membership: membership.Config{NoQuorum: true},
		}
		if change != nil {
			change(p, &c)
		}
		var err error
		if p.members[i], err = New(c, 0, limit); err != nil {
			t.Fatal(err)
		}
		p.members[i].Start(p.now)
	}
	for i, m := range p.members {
		m.Up(p.now, protocol.Rank(1-i))
	}
	return p
}

// run lets time pass.
func (p *pair) run(d protocol.Time) {
	for end := p.now + d; p.now < end; p.now += millisecond {
		for i := range p.members {
			if p.saving[i] {
				p.saving[i] = false
				p.members[i].Saved(p.now, p.saveErr[i])
			}
			p.step(i)
		}
	}
}

func (p *pair) step(i int) {
	m, other := p.members[i], p.members[1-i]
	for {
		to, head, body, ok := m.Next(p.now)
		if !ok {
			break
		}
		if p.cut || to != protocol.Rank(1-i) {
			m.SendFailed(p.now, false)
		} else if err := other.Receive(p.now, protocol.Rank(i), slices.Concat(head, body)); err != nil {
			p.t.Fatal(err)
		}
	}
	m.Settle(p.now)
	for ok := true; ok; {
		_, ok = m.Deliver(p.now)
	}
}

// say broadcasts.
func (p *pair) say(i int, text string) {
	if err := p.members[i].Write([]byte(text), 0); err != nil {
		p.t.Fatal(err)
	}
	p.members[i].FlushBatch()
}

// trouble is a run in which the second member is cut off and suspected.
func trouble(t *testing.T, change func(*pair, *member.Config)) *pair {
	t.Helper()
	p := newPair(t, change)
	p.say(0, "hello")
	p.run(50 * millisecond)
	p.say(1, "and back")
	if err := p.members[0].SendDirect(1, []byte("to "), []byte("one"), nil); err != nil {
		t.Fatal(err)
	}
	p.run(50 * millisecond)
	if m, ok := p.members[1].DeliverDirect(); !ok || string(m.Data) != "to one" || !p.members[0].FlushDirect() {
		t.Errorf("%q, %t", m.Data, ok)
	}
	p.cut = true
	p.members[0].Down(p.now, 1)
	p.run(200 * millisecond)
	p.members[0].Report(p.now, member.Report{Rank: 1, Incarnation: 1, Cause: errors.New("refused")})
	p.run(200 * millisecond)
	p.say(0, "alone")
	p.run(20 * millisecond)
	return p
}

func file(r *Recorder) []byte {
	var b bytes.Buffer
	_, _ = r.Snapshot().WriteTo(&b)
	return b.Bytes()
}

func mustReplay(t *testing.T, file []byte, until protocol.Time) (*Recording, *Result, []Event) {
	t.Helper()
	r, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	result, err := r.Replay(until, func(e Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	return r, result, events
}

func kindsOf(events []Event) (kinds []string) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestReplayComesToTheSameState(t *testing.T) {
	p := trouble(t, nil)
	for i, m := range p.members {
		_, result, _ := mustReplay(t, file(m), protocol.Never)
		if !result.Complete || result.Hash != m.Hash() || result.State.Stats != m.Stream().Stats() {
			t.Errorf("member %d: %+v, want hash %x and %+v", i, result, m.Hash(), m.State())
		}
	}
	_, result, events := mustReplay(t, file(p.members[0]), protocol.Never)
	if want := []string{"view", "up", "down", "suspects", "view"}; !slices.Equal(kindsOf(events), want) {
		t.Errorf("events %v, want %v", events, want)
	}
	if result.State.View.Number != 2 || result.State.View.Members.Len() != 1 {
		t.Errorf("%+v", result.State.View)
	}
}

// Subscriptions, and what they have got, are replayed.
func TestReplayOfTopics(t *testing.T) {
	p := newPair(t, nil)
	read, closed := p.members[1].Subscribe("news"), p.members[1].Subscribe("news")
	for _, topic := range []string{"news", "other", "news"} {
		if err := p.members[0].WriteTopic(topic, []byte("about "+topic), 0); err != nil {
			t.Fatal(err)
		}
		p.members[0].FlushBatch()
		p.run(10 * millisecond)
	}
	for range 2 {
		if m, ok := p.members[1].DeliverTopic(p.now, read); !ok || m.Topic != "news" || string(m.Data) != "about news" {
			t.Errorf("%+v, %t", m, ok)
		}
	}
	p.members[1].Unsubscribe(p.now, closed)
	for i, m := range p.members {
		_, result, _ := mustReplay(t, file(m), protocol.Never)
		if !result.Complete || result.Hash != m.Hash() || result.State.Stats != m.Stream().Stats() {
			t.Errorf("member %d: %+v, want hash %x and %+v", i, result, m.Hash(), m.State())
		}
	}
	if delivered := p.members[1].Stream().Stats().Delivered; delivered != 2 {
		t.Errorf("%d messages delivered", delivered)
	}
}

// A replay that ends in the midst is at the state of that time.
func TestReplayUntil(t *testing.T) {
	p := trouble(t, nil)
	_, result, _ := mustReplay(t, file(p.members[0]), 100*millisecond)
	if result.Complete || result.State.View.Number != 1 || result.State.Stats.Broadcast != 1 || result.State.Stats.Delivered != 1 {
		t.Errorf("%+v", result)
	}
}

// What a replay does is compared with what was done then, input for input.
func TestDivergenceIsFound(t *testing.T) {
	whole := file(trouble(t, nil).members[0])
	at := bytes.Index(whole, []byte("and back"))
	if at < 0 {
		t.Fatal("the message is not in the recording")
	}
	changed := bytes.Clone(whole)
	changed[at] ^= 1
	if _, err := Decode(changed); !errors.Is(err, ErrMalformed) {
		t.Errorf("a flipped bit: %v", err)
	}
	sum := len(changed) - 4
	binary.BigEndian.PutUint32(changed[sum:], crc32.Checksum(changed[:sum], castagnoli))
	r, err := Decode(changed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Replay(protocol.Never, nil)
	if d := new(DivergedError); !errors.As(err, &d) || d.What != deliver.String() || d.At < 50*millisecond || d.At > 60*millisecond {
		t.Errorf("another message: %v", err)
	}
}

// No byte of a recording can change without a replay noticing.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	whole := file(trouble(t, nil).members[1])
	for i := range whole {
		whole[i] ^= 0x10
		if _, err := Decode(whole); !errors.Is(err, ErrMalformed) {
			t.Fatalf("byte %d: %v", i, err)
		}
		whole[i] ^= 0x10
	}
}

func TestRecordingAtItsLimit(t *testing.T) {
	p := newPair(t, nil)
	p.members[0].limit = 1000
	p.run(50 * millisecond)
	r, result, _ := mustReplay(t, file(p.members[0]), protocol.Never)
	if p.members[0].length > 1000 || !r.Cut || !result.Complete || result.At == p.now {
		t.Errorf("%d bytes, cut: %t, %+v", p.members[0].length, r.Cut, result)
	}
}

// Whether a member could save its vote is an input, too.
func TestFailedSaveIsReplayed(t *testing.T) {
	for failing := range 4 {
		var saves [2]int
		p := trouble(t, func(p *pair, c *member.Config) {
			self := c.Self.Rank
			c.Save = func([]byte, bool) {
				p.saving[self] = true
				if saves[self]++; saves[self] > failing && self == 0 {
					p.saveErr[self] = errors.New("the disk is full")
				}
			}
		})
		_, result, _ := mustReplay(t, file(p.members[0]), protocol.Never)
		if result.Hash != p.members[0].Hash() {
			t.Errorf("after %d saves: %+v, want %+v", failing, result, p.members[0].State())
		}
	}
}

// BenchmarkStep is what a frame costs a member that is recorded, and one that is not.
func BenchmarkStep(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		b.Run(fmt.Sprintf("recorded=%t", recorded), func(b *testing.B) {
			r := newPair(b, nil).members[0]
			r.limit = MaxBytes
			var m interface {
				node.Protocol
				Settle(now protocol.Time)
			} = r.Machine
			if recorded {
				m = r
			}
			for now := protocol.Time(1); b.Loop(); now++ {
				_ = m.Receive(now, 1, []byte{heartbeat.FrameType})
				for ok := true; ok; {
					_, _, _, ok = m.Next(now)
				}
				m.Settle(now)
			}
		})
	}
}

// A file is whatever it is: decoding it fails or ends.
func FuzzDecode(f *testing.F) {
	p := newPair(f, nil)
	p.run(5 * millisecond)
	f.Add(file(p.members[0]))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 { // what is behind the checksum is to be found, too
			b = binary.BigEndian.AppendUint32(b[:len(b)-4:len(b)-4], crc32.Checksum(b[:len(b)-4], castagnoli))
		}
		r, err := Decode(b)
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
		if err == nil && r.Inputs > len(b) {
			t.Fatalf("%d inputs in %d bytes", r.Inputs, len(b))
		}
	})
}
