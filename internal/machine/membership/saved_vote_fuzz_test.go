package membership

import (
	"bytes"
	"testing"
)

// Restarted voters come from a disk, and decisions from a process that answers at an address: none
// crash, and none make sense that do not come back the same.
func FuzzSavedVote(f *testing.F) {
	self := Member{Identity: "a", Address: "10.0.0.1:7000", Incarnation: 1}
	v := View{Number: 2, Version: 5, Slots: 2, Members: MembersOf(self, Member{Rank: 1, Identity: "b", Incarnation: 2})}
	led := Decisions{[]*value{{number: 2, slots: 2, added: []Member{{Rank: 1, Identity: "b", Incarnation: 2}}}}}
	f.Add(NewSavedVote(self, v, led).Encode())
	f.Add(NewSavedVote(Member{}, v, Decisions{}).Encode())
	f.Add(led.Encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := DecodeDecisions(b); err == nil && !bytes.Equal(d.Encode(nil), b) {
			t.Errorf("decisions %x are understood as %x", b, d.Encode(nil))
		}
		s, err := DecodeSavedVote(b)
		if err != nil {
			return
		}
		if again := s.Encode(); !bytes.Equal(again, b) {
			t.Errorf("%x is understood as %x", b, again)
		}
		_, _ = Restore(Config{}, s)
	})
}
