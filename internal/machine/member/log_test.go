package member

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A member installs a view at a cost that does not depend on the size of the group:
// streams and neighbors look up the members that they deal with.
func TestInstallCopiesNoMembers(t *testing.T) {
	small, large := bytesOfInstall(t, 64), bytesOfInstall(t, 16384)
	if large > 2*small { // trees are deeper
		t.Errorf("%d bytes with 64 members, %d with 16384", small, large)
	}
}

// bytesOfInstall is how many bytes a member of a group allocates for a view.
func bytesOfInstall(t *testing.T, size int) uint64 {
	const rounds = 100
	m, views := installer(t, size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range rounds {
		m.Install(views[i%2])
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / rounds
}

// BenchmarkInstall is what a member makes of a view that is decided.
func BenchmarkInstall(b *testing.B) {
	for _, size := range []int{64, 1024, 16384} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m, views := installer(b, size)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.Install(views[i%2])
			}
		})
	}
}

// installer returns a member of a group that has a stream, and two views with and without
// another member.
func installer(t testing.TB, size int) (*Machine, [2]*membership.View) {
	members := make([]membership.Member, size)
	for r := range members {
		members[r] = membership.Member{
			Rank: protocol.Rank(r), Identity: fmt.Sprint("p", r), Address: fmt.Sprint("host", r),
			Incarnation: 1,
		}
	}
	view := membership.View{Number: 1, Slots: protocol.Rank(size), Members: membership.MembersOf(members...)}
	m, err := New(Config{Self: members[size-1], View: view})
	if err != nil {
		t.Fatal(err)
	}
	m.Start(1)
	if err := m.stream.Write([]byte("hello"), 0); err != nil {
		t.Fatal(err)
	}
	for _, _, _, ok := m.stream.Next(1); ok; _, _, _, ok = m.stream.Next(1) {
	}
	without := view
	without.Members = membership.MembersOf(append(members[:size/2:size/2], members[size/2+1:]...)...)
	return m, [2]*membership.View{&view, &without}
}
