package sequencer

import "testing"

// Bytes from another member do not crash this one, whatever they are taken for.
func FuzzFrames(f *testing.F) {
	members := []Member{{0, 1}, {1, 1}}
	leader := New(Config{Self: members[0], Safe: true, MaxBatch: 100})
	leader.View(1, members, len(members))
	_, begin, _ := leader.NextCast()
	leader.CastDone(1, false)
	_, _ = leader.Receive(1, 0, begin)
	leader.Submit("t", []byte("data"))
	forward, _ := leader.NextForward()
	_ = leader.Accept(0, forward.Body)
	_, number, _ := leader.NextCast()
	_ = leader.AcceptMark(Mark{1, 7})
	_, mark, _ := leader.NextCast()
	for _, b := range [][]byte{begin, mark, forward.Body, number, leader.Snapshot()} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New(Config{Self: members[0], Safe: true, MaxBatch: 100})
		m.View(1, members, len(members))
		_ = m.Accept(1, b)
		_ = m.Acknowledge(1, b)
		if mark, ok := DecodeMark(b); ok {
			_ = m.AcceptMark(mark)
		}
		_, _ = m.Receive(1, 0, begin)
		_, _ = m.Receive(1, 0, b)
		_ = m.Restore(b)
		for _, body, ok := m.NextCast(); ok; _, body, ok = m.NextCast() {
			if _, err := decode(body); err != nil {
				t.Fatal(err)
			}
			m.CastDone(1, false)
		}
	})
}
