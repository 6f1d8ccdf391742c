package stabilization

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/lab/bench"
)

// What a [Survivor] reports. The records of one report are in one write.
const (
	recordReady       bench.RecordKind = iota + 1 // it is a member
	recordView                                    // it is in the view of this number
	recordMissing                                 // in which this rank is missing; one for each such rank
	recordInstalled                               // since this time; the last of a view's records
	recordSuspects                                // it suspects this rank
	recordSuspectedAt                             // since this time
	recordEvicted                                 // the others have removed it from the view
)

// Survivor is a member in a process of its own, which reports what it sees. Its
// methods may be called from several goroutines.
type Survivor struct {
	Place bootstrap.Assignment
	// Again says that the member was killed and rejoins. The first time, it
	// inherits a socket: Place.Listener.
	Again bool

	reporter *bench.Reporter
}

// Serve is a process that [Run] starts. It runs a member until the standard input
// ends. Which is the process's last argument: first, or again for a member that was
// killed.
func Serve(which string, run func(context.Context, *Survivor) error) error {
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
	err = run(ctx, &Survivor{Place: place, Again: which == "again", reporter: bench.NewReporter(int(place.Rank))})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Ready reports that this process is a member.
func (s *Survivor) Ready() { s.reporter.Report(s.reporter.Record(recordReady, 0)) }

// Sees reports which ranks are missing in this member's present view. In a system
// that agrees on views, view is its number.
func (s *Survivor) Sees(view uint64, missing []int) {
	records := []bench.Record{s.reporter.Record(recordView, view)}
	for _, rank := range missing {
		records = append(records, s.reporter.Record(recordMissing, uint64(rank)))
	}
	s.reporter.Report(append(records, s.reporter.Record(recordInstalled, bench.Now()))...)
}

// Suspects reports that this member suspects another one.
func (s *Survivor) Suspects(rank int) {
	s.reporter.Report(s.reporter.Record(recordSuspects, uint64(rank)), s.reporter.Record(recordSuspectedAt, bench.Now()))
}

// Evicted reports that the others have removed this member from the view.
func (s *Survivor) Evicted() { s.reporter.Report(s.reporter.Record(recordEvicted, 0)) }
