package member

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// calls records what a unicast channel is told.
type calls struct{ list []string }

func (c *calls) note(name string) { c.list = append(c.list, name) }

func (c *calls) ReceiveBuffer(protocol.Rank, []byte, int) []byte { c.note("buffer"); return nil }

func (c *calls) Receive(protocol.Time, protocol.Rank, []byte, []byte) error {
	c.note("receive")
	return nil
}
func (c *calls) Up(protocol.Time, protocol.Rank)         { c.note("up") }
func (c *calls) Down(protocol.Time, protocol.Rank)       { c.note("down") }
func (c *calls) Writable(protocol.Time, protocol.Rank)   { c.note("writable") }
func (c *calls) SendFailed(protocol.Time, bool)          { c.note("failed") }
func (c *calls) Deadline() protocol.Time                 { return 7 }
func (c *calls) Install(protocol.Time, *membership.View) { c.note("install") }
func (c *calls) Next(protocol.Time) (protocol.Rank, []byte, []byte, bool) {
	return 1, []byte{unicastFrame}, nil, !slices.Contains(c.list, "failed")
}

// The channel of collectives gets its frames, and no others, and all that peers do.
func TestUnicastGetsItsFrames(t *testing.T) {
	g := newGroup(t, 2, false)
	c := &calls{}
	m := g.machine(0)
	m.config.Unicast = c
	if err := m.Receive(1, 1, []byte{unicastFrame, 1}); err != nil {
		t.Fatal(err)
	}
	m.ReceiveBuffer(1, []byte{unicastFrame, 1, 2}, 100)
	if err := m.BufferFilled(1, 1, []byte{unicastFrame, 1}, []byte{2}); err != nil {
		t.Fatal(err)
	}
	_ = m.Receive(1, 1, []byte{heartbeatFrame})
	_ = m.Receive(1, 1, []byte{directFrame})
	_ = m.Receive(1, 1, []byte{9, 9})
	m.ReceiveBuffer(1, []byte{directFrame, 1, 2}, 100)
	m.ReceiveBuffer(1, []byte{2, 1, 2}, 100)
	m.Up(1, 1)
	m.Down(1, 1)
	m.Writable(1, 1)
	view := m.View()
	m.Install(&view)
	for _, head, _, ok := m.Next(1); ok; _, head, _, ok = m.Next(1) {
		if head[0] == unicastFrame {
			m.SendFailed(1, true)
		}
	}
	if want := []string{
		"receive", "buffer", "receive", "up", "down", "writable", "install",
		"failed",
	}; !slices.Equal(c.list, want) {
		t.Errorf("%v, want %v", c.list, want)
	}
	if m.Deadline() != 7 || m.Unicast() != Unicast(c) {
		t.Errorf("the deadline is %d", m.Deadline())
	}
}

// The program learns what changes, and a member that has left says nothing more.
func TestStateIsTold(t *testing.T) {
	g := newGroup(t, 3, false)
	told := 0
	g.machine(0).config.OnState = func() { told++ }
	g.run(100*ms, nil)
	before := told
	g.machine(1).SetSynced(g.now)
	if !g.run(5000*ms, func() bool { v := g.roles[0].View(); return v.Members.At(1).Synced }) || told == before {
		t.Errorf("no view with the state, or it is not told: %d", told-before)
	}
	if err := g.machine(1).SetMeta(g.now, "meta"); err != nil {
		t.Fatal(err)
	}
	if !g.run(5000*ms, func() bool { v := g.roles[0].View(); return v.Members.At(1).Meta == "meta" }) {
		t.Error("no view with the meta")
	}
	g.machine(2).Leave(g.now)
	if !g.run(5000*ms, func() bool { s, _ := g.machine(2).State(); return s == membership.Left }) {
		t.Fatal("it does not leave")
	}
	g.run(400*ms, nil)
	clear(g.beats)
	g.run(2000*ms, nil)
	if g.beats[[2]protocol.Rank{2, 0}]+g.beats[[2]protocol.Rank{2, 1}] > 0 || g.beats[[2]protocol.Rank{0, 1}] == 0 {
		t.Errorf("heartbeats: %v", g.beats)
	}
}
