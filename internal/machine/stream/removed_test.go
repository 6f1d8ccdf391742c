package stream

import "testing"

// A view may have fewer ranks than the one before. A member above them, which it has removed,
// still sees links go down, and has no place in the new trees.
func TestRemovedMemberLaysNoTrees(t *testing.T) {
	m := group(t, Config{}, 4)[3]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	m.Flush(1, m.Freeze())
	if err := m.Install(1, 2, 2, MemberList{{0, 1}, {1, 1}}); err != nil {
		t.Fatal(err)
	}
	for peer := range m.config.Rank {
		m.Down(1, peer)
	}
}
