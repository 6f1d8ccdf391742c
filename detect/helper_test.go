package detect

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// journal collects reports.
type journal struct {
	mu      sync.Mutex
	reports []Report
	news    chan struct{}
}

func newJournal() *journal { return &journal{news: make(chan struct{}, 1)} }

func (j *journal) add(r Report) {
	j.mu.Lock()
	j.reports = append(j.reports, r)
	j.mu.Unlock()
	select {
	case j.news <- struct{}{}:
	default:
	}
}

func (j *journal) all() []Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.reports)
}

// want waits until exactly these reports have come, causes aside, and returns the
// last one's cause.
func (j *journal) want(t *testing.T, want ...Report) error {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		got := j.all()
		for i := range min(len(got), len(want)) {
			if g, w := got[i], want[i]; g.Rank != w.Rank || g.Incarnation != w.Incarnation || g.Alive != w.Alive {
				t.Fatalf("report %d is %+v, want %+v", i, g, w)
			}
			if (got[i].Cause == nil) != got[i].Alive {
				t.Fatalf("report %d has the wrong kind of cause: %+v", i, got[i])
			}
		}
		if len(got) > len(want) {
			t.Fatalf("reports %+v, want only %+v", got, want)
		}
		if len(got) == len(want) {
			if len(got) == 0 {
				return nil
			}
			return got[len(got)-1].Cause
		}
		select {
		case <-j.news:
		case <-deadline:
			t.Fatalf("reports %+v, want %+v", got, want)
		}
	}
}

func suspected(rank protocol.Rank, incarnation uint64) Report {
	return Report{Rank: rank, Incarnation: incarnation}
}

func trusted(rank protocol.Rank, incarnation uint64) Report {
	return Report{Rank: rank, Incarnation: incarnation, Alive: true}
}

// started starts a detector, and closes it when the test ends. After that it
// must report nothing.
func started(t *testing.T, d Detector) *journal {
	t.Helper()
	j := newJournal()
	if err := d.Start(j.add); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, d) })
	return j
}

// closed closes a detector, which must not take long.
func closed(t *testing.T, d Detector) {
	t.Helper()
	start := time.Now()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	testutil.Took(t, "Close", time.Since(start), 3*time.Second)
}

var errLost = errors.New("connection lost")
