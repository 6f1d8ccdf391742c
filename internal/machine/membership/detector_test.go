package membership

import (
	"hash/maphash"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A detector may report anything: what is not about another member of the view changes
// nothing.
func TestSuspectsOnlyOtherMembers(t *testing.T) {
	hash := maphash.MakeSeed()
	v := firstView(5)
	self := *v.Members.At(2)
	m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
	if err != nil {
		t.Fatal(err)
	}
	before := fingerprint(hash, m.essence())
	for _, r := range []protocol.Rank{self.Rank, protocol.NoRank, v.Slots, v.Slots + 7} {
		for _, incarnation := range []uint64{0, 1, 2} {
			m.Suspect(1, r, incarnation)
			m.Trust(1, r, incarnation)
			m.Suspect(1, r, incarnation)
			if fingerprint(hash, m.essence()) != before {
				t.Errorf("a suspicion of rank %d, incarnation %d, counts", r, incarnation)
			}
		}
	}
	m.Suspect(1, 3, 1)
	if fingerprint(hash, m.essence()) == before {
		t.Error("a suspicion of a member does not count")
	}
}

// A suspicion that is repeated is not reported again at once. One of a later incarnation is.
func TestRepeatedSuspicion(t *testing.T) {
	for incarnation := range uint64(3) {
		a := newAsker(t, func(c *Config) { c.Self = *c.View.Members.At(1) })
		a.Suspect(a.now, 4, 1)
		a.run()
		a.Suspect(a.now, 4, incarnation)
		if n := a.sentTo(0, Report); n > 0 != (incarnation == 2) {
			t.Errorf("incarnation %d: %d more reports", incarnation, n)
		}
	}
}
