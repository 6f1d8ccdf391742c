//go:build unix

package bench

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/pleach-go/pleach/bootstrap"
)

// Survivor is a member in a process of its own, which tells what it sees. Its
// methods may be called from several goroutines.
type Survivor struct {
	Place bootstrap.Assignment
	// Again says that it has been killed and comes back. The first time, there
	// is a socket for it: Place.Listener.
	Again bool

	report io.Writer
}

// ServeSurvivor is a process that [Stabilize] starts, for the first time or again,
// as its last argument says: the member that run makes, until the standard input
// ends.
func ServeSurvivor(which string, run func(context.Context, *Survivor) error) error {
	place, err := bootstrap.Detect(os.Getenv)
	if err != nil {
		return err
	}
	if which != "first" && which != "again" {
		return fmt.Errorf("bench: %q: a member is started first or again", which)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing comes but its end
		cancel()
	}()
	err = run(ctx, &Survivor{Place: place, Again: which == "again", report: os.NewFile(reportFile, "report")})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Ready tells that this member is where it belongs.
func (s *Survivor) Ready() { s.tell(s.record(recordReady, 0)) }

// Sees tells which ranks are missing as this member sees it now. Of a system that
// agrees on views, view is the number of the present one.
func (s *Survivor) Sees(view uint64, missing []int) {
	records := []record{s.record(recordView, view)}
	for _, rank := range missing {
		records = append(records, s.record(recordMissing, uint64(rank)))
	}
	s.tell(append(records, s.record(recordInstalled, now()))...)
}

// Suspects tells that this member thinks another one dead.
func (s *Survivor) Suspects(rank int) {
	s.tell(s.record(recordSuspects, uint64(rank)), s.record(recordSuspectedAt, now()))
}

// Evicted tells that the others have gone on without this member.
func (s *Survivor) Evicted() { s.tell(s.record(recordEvicted, 0)) }

func (s *Survivor) record(kind recordKind, value uint64) record {
	return record{kind, uint32(s.Place.Rank), value}
}

// tell reports, in one write: what others report must not come in between.
func (s *Survivor) tell(records ...record) {
	var b []byte
	for _, r := range records {
		b = r.append(b)
	}
	_, _ = s.report.Write(b) // if nobody listens, the input ends too
}
