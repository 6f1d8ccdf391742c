package membership

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// forgetfulLog is a [Log] that has no messages and keeps nothing.
type forgetfulLog struct{}

func (forgetfulLog) Freeze() []Position { return nil }
func (forgetfulLog) Thaw()              {}
func (forgetfulLog) Flush([]Position)   {}
func (forgetfulLog) Flushed() bool      { return true }
func (forgetfulLog) Install(*View)      {}

// A member needs as much memory after thousands of views as after the first ones,
// those that it keeps for stragglers: here one after another joins, and is gone.
func TestMemoryDoesNotGrowWithViews(t *testing.T) {
	v := firstView(64)
	m, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}, NoQuorum: true})
	if err != nil {
		t.Fatal(err)
	}
	now := protocol.Time(1)
	pull := func() {
		for _, _, ok := m.Next(now); ok; _, _, ok = m.Next(now) {
		}
	}
	for _, other := range v.Members.All() { // alone, it decides at once
		m.Suspect(now, other.Rank, other.Incarnation)
	}
	pull()
	herd := func(number uint64) { // of 32, so that a view is large
		for i := range uint64(32) {
			m.Join(now, number, Member{Identity: fmt.Sprint("p", 1+i), Nonce: 2 + number}, false)
		}
		pull()
		now += second
		pull()
		for _, ok := m.Answers(); ok; _, ok = m.Answers() {
		}
		if m.view.Members.Len() != 33 {
			t.Fatalf("%v", &m.view)
		}
		for _, other := range m.view.Members.All() {
			m.Suspect(now, other.Rank, other.Incarnation)
		}
		now += second
		pull()
	}
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	const early, late = keptCommits, 1500
	var before int64
	for number := range uint64(late) {
		if number == early {
			before = heap()
		}
		herd(number)
	}
	if grown := heap() - before; grown > 256<<10 || m.view.Number < 2*late {
		t.Errorf("%d KiB more after %d views", grown>>10, m.view.Number)
	}
	runtime.KeepAlive(m)
}
