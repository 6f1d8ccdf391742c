package detect

import "github.com/pleach-go/pleach/protocol"

// Feed passes on the knowledge of an external source: a launcher that sees its
// processes exit, or a watcher of Slurm or Kubernetes. Make one with [NewFeed].
//
// A call is about the process that is watched under the rank at that moment. A
// source should repeat what it knows from time to time, because the view may have
// changed; repetitions cost nothing.
type Feed struct{ tracker *Tracker }

var _ Detector = (*Feed)(nil)

// NewFeed makes a feed.
func NewFeed() *Feed { return &Feed{NewTracker()} }

// Start implements [Detector].
func (f *Feed) Start(report func(Report)) error { return f.tracker.Start(report) }

// Watch implements [Detector].
func (f *Feed) Watch(peers Peers) { f.tracker.Watch(peers) }

// Close implements [Detector].
func (f *Feed) Close() error {
	return f.tracker.Close()
}

// Suspect reports that the process of a rank may have died. It does not block. It
// returns false, and has no effect, if the rank is not watched.
func (f *Feed) Suspect(rank protocol.Rank, cause error) bool {
	p, ok := f.tracker.Watched(rank)
	if ok {
		f.tracker.Suspect(p, ErrReported, cause)
	}
	return ok
}

// Trust withdraws a suspicion. It returns false if the rank is not watched.
func (f *Feed) Trust(rank protocol.Rank) bool {
	p, ok := f.tracker.Watched(rank)
	if ok {
		f.tracker.Trust(p)
	}
	return ok
}
