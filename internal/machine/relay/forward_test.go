package relay

import (
	"bytes"
	"testing"
)

// The lead ships a message that its origin has forwarded before the broadcast of it arrives,
// and the broadcast gives it nothing to ship again.
func TestLeadShipsWhatIsForwarded(t *testing.T) {
	m := newModel(t, 2, 3, 1, 1<<20)
	lead, sent := m.findID("a0"), map[string]int{}
	m.broadcast(m.findID("a2"), sent)
	if len(m.sends) != 1 || !m.sends[0].forward || m.sends[0].to != lead {
		t.Fatalf("%d frames are on their way, not the one to the lead", len(m.sends))
	}
	m.deliverSend(m.sends[0])
	if n := lead.Counts().Data; n != 1 {
		t.Fatalf("the lead has shipped %d messages when one was forwarded to it", n)
	}
	m.run()
	if n := m.copies(); n != 1 {
		t.Errorf("%d copies of a message were shipped", n)
	}
	m.check("forwarded", sent)
}

// Messages that follow each other fast, and long ones, are broadcast only. So are those of
// the lead itself.
func TestNotAllMessagesAreForwarded(t *testing.T) {
	m := newModel(t, 2, 3, 1, 1<<20)
	forwards := func(id string, data []byte) (n int) {
		p := m.findID(id)
		p.Broadcast(m.now, "", data)
		for _, a := range p.Actions() {
			if _, ok := a.(Forward); ok {
				n++
			}
		}
		return n
	}
	if n := forwards("a2", nil) + forwards("a2", nil); n != 1 {
		t.Errorf("of two messages at a time, %d were forwarded", n)
	}
	m.now += 100
	if n := forwards("a2", bytes.Repeat([]byte("x"), maxForward+1)); n != 0 {
		t.Error("a long message was forwarded")
	}
	if n := forwards("a2", bytes.Repeat([]byte("x"), maxForward)); n != 1 {
		t.Error("a message was not forwarded")
	}
	if n := forwards("a0", nil); n != 0 {
		t.Error("the lead has forwarded a message")
	}
	for what, change := range map[string]func(*modelMember){
		"it has led last":     func(p *modelMember) { p.leader = p.rank },
		"nothing is to be so": func(p *modelMember) { p.config.ForwardDelay = 0 },
	} {
		p := m.findID("a1")
		leader, delay := p.leader, p.config.ForwardDelay
		if n := forwards("a1", nil); n != 1 {
			t.Errorf("%s: a message was not forwarded before", what)
		}
		m.now += 100
		change(p)
		if forwards("a1", nil) != 0 {
			t.Errorf("%s: a message was forwarded", what)
		}
		m.now += 100
		p.leader, p.config.ForwardDelay = leader, delay
	}
}

// What a process may have on its way to other zones is bounded, to the byte.
func TestWindow(t *testing.T) {
	m := newModel(t, 2, 3, 1, 1<<20)
	p := m.findID("a1")
	if !p.Window(1) {
		t.Error("nothing is on its way, and nothing may be sent")
	}
	p.Broadcast(m.now, "", []byte("data"))
	if cost := len("data") + entryOverhead; p.Window(cost) || !p.Window(cost+1) {
		t.Error("the window is not what is on its way")
	}
}

// A member that is not in the backbone knows only from watermarks what other zones have.
func TestWindowWaitsForWatermarks(t *testing.T) {
	m := plain(t)
	m.Broadcast(2, "", []byte("data"))
	if m.Window(1) {
		t.Error("the window is open before a watermark")
	}
	mark := &frame{kind: kindWatermark, zone: "a", positions: []position{{Origin: m.self, Seq: 1, Acked: 1}}}
	if err := m.FromZone(3, 0, mark.encode()); err != nil || !m.Window(1) {
		t.Errorf("the window is closed after a watermark: %v", err)
	}
}

// A lead broadcasts only those messages in place of a dead origin that nobody has broadcast, also if
// another one arrives twice.
func TestLeadSpreadsWhatWasOnlyForwarded(t *testing.T) {
	m := lead(t)
	m.config.GapDelay = 10
	x := Origin{"a", "x", 1}
	arrive(t, m, x, 1, 3)
	last := (&frame{kind: kindData, origin: x, seq: 4, data: []byte("d")}).encode()
	if err := m.Forwarded(3, 5, last); err != nil {
		t.Fatal(err)
	}
	arrive(t, m, x, 1, 1)
	m.Actions()
	m.Tick(3 + m.config.GapDelay)
	if casts := castMessages(m); len(casts) != 1 || !bytes.Equal(casts[0], last) {
		t.Errorf("%d messages are broadcast", len(casts))
	}
}

// Of two messages that were forwarded, the lead broadcasts the one of which no broadcast has come.
func TestLeadSpreadsTheRest(t *testing.T) {
	m := lead(t)
	m.config.GapDelay = 10
	x := Origin{"a", "x", 1}
	var last []byte
	for seq := range uint64(2) {
		last = (&frame{kind: kindData, origin: x, seq: seq + 1, data: []byte("d")}).encode()
		if err := m.Forwarded(3, 5, last); err != nil {
			t.Fatal(err)
		}
	}
	arrive(t, m, x, 1, 1)
	m.Actions()
	m.Tick(3 + m.config.GapDelay)
	if casts := castMessages(m); len(casts) != 1 || !bytes.Equal(casts[0], last) {
		t.Errorf("%d messages are broadcast", len(casts))
	}
}

// castMessages returns the messages that a machine has broadcast since the last call.
func castMessages(m *Machine) (casts [][]byte) {
	for _, a := range m.Actions() {
		if c, ok := a.(Cast); ok && kindOf(c.Frame) == kindData {
			casts = append(casts, c.Frame)
		}
	}
	return casts
}
