package group_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/fault"
)

// awaitStatus waits for a status.
func awaitStatus(t *testing.T, g *pleach.Group, good func(pleach.Status) bool) (s pleach.Status) {
	t.Helper()
	testutil.Eventually(t, "a status", func() bool {
		s = g.Status()
		return good(s)
	}, func() any { return s })
	return s
}

// The view in the log says which members came and went, and why.
func TestLogOfViews(t *testing.T) {
	var log testutil.LogBuffer
	first := member(t)(pleach.Create(t.Context(), pleach.Config{ID: "a", Group: "web", Logger: log.Logger()}))
	second := member(t)(pleach.Join(t.Context(), pleach.Config{ID: "b", Group: "web"}, first.View().Leader().Address))
	log.Await(t, "msg=view", "group=web rank=0", "number=2", "joined=[b]", "left=[]")
	log.Await(t, `msg="member joined"`, "rank=0", "view=2", "peer=1", "id=b", "cause=joined")
	_ = second.Abort()
	log.Await(t, "msg=suspected", "rank=0", "peer=1", "id=b")
	log.Await(t, "msg=view", "number=3", "joined=[]", "left=[b]")
	log.Await(t, `msg="member gone"`, "rank=0", "view=3", "peer=1", "id=b", "cause=suspected", "by=0",
		"its process is gone")
	third := member(t)(pleach.Join(t.Context(), pleach.Config{ID: "c", Group: "web"}, first.View().Leader().Address))
	if err := third.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.Await(t, `msg="member gone"`, "rank=0", "view=5", "id=c", "cause=left")
	if lines := log.Lines("rank="); len(lines) != len(log.Lines("rank=0")) {
		t.Errorf("rank is not always this member's: %q", lines)
	}
}

// A member that loses its quorum says so in its log, once, and in its status. It also
// says when it has the quorum again.
func TestLogAndStatusOfQuorum(t *testing.T) {
	const size = 5
	var log testutil.LogBuffer
	feed := detect.NewFeed()
	bad := fault.New(1, fault.Config{})
	addresses := testutil.FreeAddresses(t, size)
	groups := make([]*pleach.Group, size)
	for r := range groups {
		inner, err := tcp.New(tcp.Config{Rank: protocol.Rank(r), Addresses: addresses, Open: true})
		if err != nil {
			t.Fatal(err)
		}
		c := pleach.Config{
			Addresses: addresses, Rank: r,
			Network: pleach.Network{Transport: bad.Wrap(protocol.Rank(r), inner)},
		}
		if r == 0 {
			c.Logger, c.Detection.Detectors = log.Logger(), []detect.Detector{feed}
		}
		groups[r] = start(t, c)
	}
	meet(t, groups)
	none := pleach.ArbiterStatus{State: pleach.ArbiterNone}
	if s := groups[0].Status(); s.View != 1 || s.Members != size ||
		s.Quorum != (pleach.Quorum{Voters: size, Reachable: size, Needed: 3, OK: true, Arbiter: none}) ||
		len(s.Suspects) != 0 || s.LastError != "" {
		t.Errorf("%+v", s)
	}
	parted, err := fault.Parse("partition 0 | 1 2 3 4")
	if err == nil {
		err = bad.Run(t.Context(), parted)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, cause := time.Now(), errors.New("maintenance")
	for rank := protocol.Rank(1); rank <= 3; rank++ {
		feed.Suspect(rank, cause)
	}
	log.Await(t, "level=WARN", "no quorum: 2 of 5, 3 needed", "rank=0", "view=1")
	s := groups[0].Status()
	if s.Quorum != (pleach.Quorum{Voters: size, Reachable: 2, Needed: 3, Arbiter: none}) || len(s.Suspects) != 3 {
		t.Fatalf("%+v", s)
	}
	for i, x := range s.Suspects {
		if x.Rank != i+1 || x.ID != addresses[x.Rank] || x.Since.Before(before) ||
			!strings.Contains(x.Cause, cause.Error()) || !slices.Equal(x.By, []int{0}) {
			t.Errorf("%+v", x)
		}
	}
	feed.Suspect(4, cause)
	awaitStatus(t, groups[0], func(s pleach.Status) bool { return s.Quorum.Reachable == 1 })
	bad.Do(fault.Heal{})
	for rank := protocol.Rank(1); rank <= 4; rank++ {
		feed.Trust(rank)
	}
	log.Await(t, "quorum regained", "rank=0")
	awaitStatus(t, groups[0], func(s pleach.Status) bool { return s.Quorum.OK && len(s.Suspects) == 0 })
	if lines := log.Lines("no quorum"); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}

// faulty is a transport whose process has run out of file descriptors.
type faulty struct {
	*tcp.Transport
	mu sync.Mutex
	at time.Time
}

var errDescriptors = fmt.Errorf("accept: %w", syscall.EMFILE)

func (f *faulty) LocalError() (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, errDescriptors
}

var _ transport.AddressBook = (*faulty)(nil)

// silentDetector reports silence on command.
type silentDetector struct{ *detect.Tracker }

// A member without file descriptors does not take the others for silent. When it has
// some again, it does.
func TestOwnErrorsAreNoEvidenceAgainstOthers(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 3)
	detector := silentDetector{detect.NewTracker()}
	var groups []*pleach.Group
	var broken *faulty
	for rank := range addresses {
		c := pleach.Config{Addresses: addresses, Rank: rank}
		if rank == 0 {
			l, err := net.Listen("tcp", addresses[0])
			if err != nil {
				t.Fatal(err)
			}
			inner, err := tcp.New(tcp.Config{Addresses: addresses, Listener: l, Open: true})
			if err != nil {
				t.Fatal(err)
			}
			broken = &faulty{Transport: inner, at: time.Now()}
			c.Network.Transport, c.Detection.Detectors = broken, []detect.Detector{detector}
		}
		groups = append(groups, start(t, c))
	}
	meet(t, groups)
	if s := groups[0].Status(); s.LastError != errDescriptors.Error() || s.LastErrorAt.IsZero() {
		t.Errorf("%+v", s)
	}
	p, ok := detector.Watched(protocol.Rank(2))
	if !ok {
		t.Fatal("rank 2 is not watched")
	}
	detector.Suspect(p, detect.ErrSilent, context.DeadlineExceeded)
	time.Sleep(200 * time.Millisecond) // a report would have come
	if s := groups[0].Status(); len(s.Suspects) != 0 || s.Members != 3 {
		t.Fatalf("its own error counts against others: %+v", s)
	}
	broken.mu.Lock()
	broken.at = time.Now().Add(-time.Hour)
	broken.mu.Unlock()
	awaitView(t, groups[0], "without rank 2", without(2))
}

// A status tells of each member what is known of it, and of each view why it came. It
// survives JSON, with every name in snake case.
func TestStatusOfPeersAndHistory(t *testing.T) {
	first := member(t)(pleach.Create(t.Context(), pleach.Config{ID: "a", Group: "web"}))
	second := member(t)(pleach.Join(t.Context(), pleach.Config{ID: "b", Group: "web"}, first.View().Leader().Address))
	third := member(t)(pleach.Join(t.Context(), pleach.Config{ID: "c", Group: "web"}, first.View().Leader().Address))
	if err := third.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Send(t.Context(), pleach.Member{Rank: 0}, []byte("unread")); err != nil {
		t.Fatal(err)
	}
	if err := first.Broadcast(t.Context(), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	for range second.Messages(t.Context()) {
		break
	}
	s := awaitStatus(t, second, func(s pleach.Status) bool { return s.View == 4 && len(s.Peers) == 1 })
	p := s.Peers[0]
	if s.Group != "web" || s.ID != "b" || s.Rank != 1 || s.Time.IsZero() || s.Ended != "" {
		t.Errorf("%+v", s)
	}
	if p.ID != "a" || !p.Connected || p.LastHeard.IsZero() || p.LastHeard.After(s.Time) || p.FramesReceived == 0 ||
		p.BytesSent == 0 || p.UnreadBytes == 0 {
		t.Errorf("%+v", p)
	}
	if st := s.Stats; st.Delivered != 1 || st.DeliveredBytes != 5 || st.FramesReceived < p.FramesReceived ||
		st.Views != 2 {
		t.Errorf("%+v", st)
	}
	var history []string
	for _, v := range s.History {
		history = append(history, fmt.Sprint(v.Number, v.Members, v.Changes))
	}
	if want := []string{"2 2 []", "3 3 [c: joined]", "4 2 [c: left]"}; !slices.Equal(history, want) {
		t.Errorf("history %q, not %q", history, want)
	}
	text, err := json.Marshal(s)
	var back pleach.Status
	if err = errors.Join(err, json.Unmarshal(text, &back)); err != nil ||
		fmt.Sprint(back.History[1].Changes) != "[c: joined]" || back.Peers[0].FramesSent != p.FramesSent {
		t.Errorf("%v: %s", err, text)
	}
	if upper := regexp.MustCompile(`"[^"]*[A-Z][^"]*":`).FindAll(text, -1); upper != nil {
		t.Errorf("%q", upper)
	}
}

// A history is bounded.
func TestHistoryIsBounded(t *testing.T) {
	g := member(t)(pleach.Create(t.Context(), pleach.Config{}))
	for i := range 70 {
		if err := g.SetMeta(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	s := g.Status()
	if last := s.History[len(s.History)-1]; len(s.History) != 64 || last.Number != 71 || len(last.Changes) != 1 ||
		last.Changes[0].Cause != pleach.CauseChanged {
		t.Errorf("%d views, the last %+v", len(s.History), last)
	}
}
