package detect

import "github.com/pleach-go/pleach/protocol"

// Feed passes on what an outside source knows: a launcher that sees its
// processes end, or a watcher of Slurm or Kubernetes. It only reports; it
// removes nobody. Make one with [NewFeed].
//
// News are about the process watched under a rank at that moment. A source
// should repeat what it knows from time to time, because a view may have changed
// meanwhile; repetitions cost nothing.
type Feed struct{ tracker *tracker }

var _ Detector = (*Feed)(nil)

// NewFeed makes a feed.
func NewFeed() *Feed { return &Feed{newTracker()} }

// Start begins to report.
func (f *Feed) Start(report func(Report)) error { return f.tracker.start(report) }

// Watch sets who is watched.
func (f *Feed) Watch(peers []Peer) { f.tracker.watch(peers) }

// Close ends the feed.
func (f *Feed) Close() error {
	f.tracker.close()
	return nil
}

// Suspect says that a rank's process may have died. It never waits. It returns
// false if the rank is not watched: the news is lost then.
func (f *Feed) Suspect(rank protocol.Rank, cause error) bool {
	p, ok := f.tracker.watched(rank)
	if ok {
		f.tracker.suspect(p, ErrReported, cause)
	}
	return ok
}

// Trust withdraws that. It returns false if the rank is not watched.
func (f *Feed) Trust(rank protocol.Rank) bool {
	p, ok := f.tracker.watched(rank)
	if ok {
		f.tracker.trust(p)
	}
	return ok
}
