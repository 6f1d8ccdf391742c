package pleach

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// A traced broadcast takes the same way as any other. Each member that it reaches tells the
// sender directly when it has arrived, from which member, and how.

// Trace is the way that a broadcast has taken.
type Trace struct {
	// Root is the rank of the sender, which has sent the message in View, at Sent.
	Root int       `json:"root"`
	View uint64    `json:"view"`
	Sent time.Time `json:"sent"`
	// Arrivals are in the order of their times.
	Arrivals []Arrival `json:"arrivals"`
	// Missing are the ranks of the members that have not reported.
	Missing []int `json:"missing"`
}

// Arrival is the arrival of a traced broadcast at a member. Of a long message it is that of
// the first segment.
type Arrival struct {
	Rank int `json:"rank"`
	// From is the member that has sent it to this one.
	From int  `json:"from"`
	Path Path `json:"path"`
	// After is the time since the message was sent. It is a difference of two clocks: if
	// the members are on different hosts, it is as exact as those are synchronized, and may
	// be negative.
	After time.Duration `json:"after_ns"`
}

// Path is how a broadcast has reached a member.
type Path string

// The paths of an [Arrival].
const (
	// PathTree means that the member's parent in the tree has sent it, or a member that
	// feeds this one in the parent's place.
	PathTree Path = "tree"
	// PathCorrection means that it was in a correction message of a ring neighbor.
	PathCorrection Path = "correction"
	// PathRepair means that the member has requested it, after a correction message or
	// because a later one had arrived.
	PathRepair Path = "repair"
)

// paths are the paths by their numbers in a report.
var paths = [...]Path{stream.ByTree: PathTree, stream.ByOffer: PathCorrection, stream.ByPull: PathRepair}

// tracer traces broadcasts of this member, and reports those of others. All but lock and reported
// is used within node.Do.
type tracer struct {
	*core
	sender   *sender
	direct   *directs
	lock     chan struct{} // held by the one BroadcastTraced that waits
	reported notify.Notifier
	trace    *Trace // nil: none, or it is not sent yet
	number   uint64
}

// BroadcastTraced broadcasts data to a topic like [Group.BroadcastTopic], or like
// [Group.Broadcast] if the topic is empty, and waits until all members have
// reported when and how it has reached them. If ctx ends first, BroadcastTraced returns the
// reports so far, and the error of ctx. Members that leave the view meanwhile are not waited
// for. There is one traced broadcast of a process at a time. Each member opens a connection
// to this one for its report.
func (g *Group) BroadcastTraced(ctx context.Context, topic string, data []byte) (*Trace, error) {
	return g.session().tracer.broadcastTraced(ctx, topic, data)
}

func (r *tracer) broadcastTraced(ctx context.Context, topic string, data []byte) (*Trace, error) {
	if topic != "" && !stream.ValidTopic(topic) {
		return nil, r.wrap("trace", &TopicError{topic})
	}
	if r.machine.Static() {
		return nil, r.wrap("trace", ErrStatic)
	}
	select {
	case r.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, r.wrap("trace", ctx.Err())
	}
	defer func() { <-r.lock }()
	defer func() { _ = r.node.Do(func(protocol.Time) { r.trace = nil }) }()
	if err := r.sender.broadcast(ctx, topic, data, r.machine.Trace); err != nil {
		return nil, err
	}
	return r.awaitArrivals(ctx)
}

// awaitArrivals waits for the reports of all members.
func (r *tracer) awaitArrivals(ctx context.Context) (*Trace, error) {
	for {
		reported, view := r.reported.Wait(), r.changed.Wait()
		var t *Trace
		if err := r.node.Do(func(protocol.Time) { t = r.traced() }); err != nil {
			return nil, ErrClosed
		}
		if t != nil && len(t.Missing) == 0 {
			return t, nil
		}
		select {
		case <-reported:
		case <-view:
		case <-ctx.Done():
			return t, r.wrap("trace", ctx.Err())
		case <-r.life.Done():
			return t, r.wrap("trace", r.Err())
		}
	}
}

// traced returns a copy of the trace, with the members that are missing, within node.Do. It
// is nil if the message is not sent yet.
func (r *tracer) traced() *Trace {
	if r.trace == nil {
		return nil
	}
	t := *r.trace
	t.Arrivals, t.Missing = slices.Clone(t.Arrivals), []int{}
	slices.SortStableFunc(t.Arrivals, func(a, b Arrival) int { return int(a.After - b.After) })
	for _, m := range r.view.Load().Members.All() {
		rank := int(m.Rank)
		if rank != t.Root && m.Incarnation <= t.View &&
			!slices.ContainsFunc(t.Arrivals, func(a Arrival) bool { return a.Rank == rank }) {
			t.Missing = append(t.Missing, rank)
		}
	}
	return &t
}

// reportBytes is the length of a report: the rank of the member that has sent the message,
// its path, and the time of its arrival in Unix nanoseconds.
const reportBytes = 4 + 1 + 8

// reportArrivals reports the traced broadcasts that have arrived in this step to their
// senders, and notes that one of this member was sent. It is called within node.Do.
func (r *tracer) reportArrivals() {
	for _, a := range r.stream.Arrivals() {
		at := r.node.Wall(a.At)
		if a.Root == r.self.Rank {
			r.number = a.Number
			r.trace = &Trace{Root: r.Rank(), View: r.view.Load().Number, Sent: at, Arrivals: []Arrival{}}
			continue
		}
		report := binary.BigEndian.AppendUint32(make([]byte, 0, reportBytes), uint32(a.From))
		report = binary.BigEndian.AppendUint64(append(report, byte(a.Path)), uint64(at.UnixNano()))
		r.direct.channel.SendArrival(a.Root, a.Incarnation, a.Number, report)
	}
}

// takeArrival takes the report of another member, within node.Do.
func (r *tracer) takeArrival(from protocol.Rank, number uint64, report []byte) {
	t := r.trace
	if t == nil || number != r.number ||
		slices.ContainsFunc(t.Arrivals, func(a Arrival) bool { return a.Rank == int(from) }) {
		return // late, or again
	}
	a, err := decodeArrival(report)
	if err != nil {
		r.log.Warn("report refused", "from", from, "error", err)
		return
	}
	a.Rank = int(from)
	a.After -= time.Duration(t.Sent.UnixNano())
	t.Arrivals = append(t.Arrivals, a)
	r.reported.Notify()
}

// errReport is the error of a report that no member would send.
var errReport = errors.New("pleach: malformed report of an arrival")

// decodeArrival decodes a report. The time in it is that of day.
func decodeArrival(b []byte) (a Arrival, err error) {
	if len(b) != reportBytes || int(b[4]) >= len(paths) {
		return a, fmt.Errorf("%w: %x", errReport, b[:min(len(b), reportBytes)])
	}
	return Arrival{
		From: int(binary.BigEndian.Uint32(b)), Path: paths[b[4]],
		After: time.Duration(binary.BigEndian.Uint64(b[5:])),
	}, nil
}
