package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// recorder is a link that keeps what is sent: the generations that it tells of, by receiver.
type recorder struct {
	mu   sync.Mutex
	told map[int]int
}

func (r *recorder) Send(_ context.Context, to int, head, body []byte) error {
	message := slices.Concat(head, body)
	if msgType(message[0]) == typeNested {
		message = message[contextIDSize:]
	}
	h, body, err := parseHeader(message, 8)
	if err != nil || h.msgType != typeGeneration {
		return err
	}
	notice, err := h.generationNotice(body, 8)
	r.mu.Lock()
	defer r.mu.Unlock()
	if notice.what == generationBegun {
		r.told[to]++
	}
	return err
}

func (r *recorder) toldOf(to int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told[to]
}

func newRecorded(t *testing.T, c Config) (*Engine, *recorder) {
	t.Helper()
	link := &recorder{told: make(map[int]int)}
	c.Size, c.Link = 3, link
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, link
}

// waits reports whether a process still waits to be admitted.
func waits(e *Engine) bool {
	select {
	case <-e.generation.candidacy.done:
		return false
	default:
		return true
	}
}

func receiveNotice(t *testing.T, e *Engine, from int, n generationNotice) {
	t.Helper()
	head, body := n.bytes()
	prefix := []byte{byte(typeNested), 0, 0, 0, 0, 0, 0, 9}
	if n.what != generationBegun {
		prefix = nil
	}
	if err := e.Receive(from, slices.Concat(prefix, head, body)); err != nil {
		t.Fatal(err)
	}
}

// A view that was installed before changes nothing, nor does an older one: a generation that is derived
// with a view may get it again.
func TestFormerViewsChangeNothing(t *testing.T) {
	e, _ := newRecorded(t, Config{View: 1})
	all := []Member{{0, 1}, {1, 1}, {2, 1}}
	e.InstallMembers(3, all[:2])
	for view := range uint64(4) {
		e.InstallMembers(view, all)
	}
	if g := &e.generation; g.view != 3 || len(g.members) != 2 || len(g.departed) != 1 {
		t.Errorf("view %d has %d members, and %d have left", g.view, len(g.members), len(g.departed))
	}
}

// A newcomer is admitted when it has come to the view of its generation, since it could not
// send to members that it does not know. It then tells the others that are new before it
// sends anything else, as their notices may be late.
func TestNewcomerKnowsItsGeneration(t *testing.T) {
	e, link := newRecorded(t, Config{Rank: 1, Waiting: 3})
	e.InstallMembers(3, []Member{{0, 1}, {1, 3}})
	all := []Member{{0, 1}, {1, 3}, {2, 4}}
	receiveNotice(t, e, 0, generationNotice{view: 2, before: 1, members: []Member{{0, 1}}})
	receiveNotice(t, e, 0, generationNotice{view: 4, before: 2, members: all})
	if !waits(e) {
		t.Fatal("admitted in a view that it does not know")
	}
	e.InstallMembers(4, all)
	c, err := e.Comm().Admit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	joined, oldest := c.engine.Admission()
	if !slices.Equal(joined, []int{1, 2}) || oldest != 0 || c.Owner(2) != 2 || c.engine == e {
		t.Errorf("joined %v, oldest %d, owner %d", joined, oldest, c.Owner(2))
	}
	if link.toldOf(2) != 1 || link.toldOf(0) != 0 {
		t.Errorf("it has told %v", link.told)
	}
}

// A process that waits ends when all that are left wait as well, and not before.
func TestOnlyWaitingProcessesAreLeft(t *testing.T) {
	e, _ := newRecorded(t, Config{Rank: 1, Waiting: 3})
	e.InstallMembers(3, []Member{{0, 1}, {1, 3}, {2, 2}})
	receiveNotice(t, e, 2, generationNotice{what: waitsToo, view: 2})
	e.InstallMembers(4, []Member{{1, 3}, {2, 4}}) // another process than the one that waited
	receiveNotice(t, e, 2, generationNotice{view: 4, before: 1, members: []Member{{2, 4}}})
	receiveNotice(t, e, 2, generationNotice{what: waitsToo, view: 4}) // said before, and late
	if !waits(e) {
		t.Fatal("ended, although rank 2 is in the job")
	}
	e.InstallMembers(5, []Member{{0, 5}, {1, 3}})
	receiveNotice(t, e, 0, generationNotice{what: waitsToo, view: 5})
	if _, err := e.Comm().Admit(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("got %v", err)
	}
}

// Newcomers are told of a generation when it is decided. One that is only accepted may be
// lost with the processes that know of it, and another be decided.
func TestNewcomersAreToldWhenItIsDecided(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	e, link := newRecorded(t, Config{Rank: 1, View: 1})
	e.InstallMembers(2, []Member{{0, 1}, {1, 1}})
	e.InstallMembers(3, []Member{{0, 1}, {1, 1}, {2, 3}})
	if err := e.Flush(ctx); err != nil { // it has told that rank 2 is not in the first generation
		t.Fatal(err)
	}
	admitted := make(chan error, 1)
	go func() {
		_, err := e.Comm().Admit(ctx)
		admitted <- err
	}()
	testutil.Eventually(t, "an agreement", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.agreements.begun > 0
	})
	phase := func(p msgType) *Engine {
		m := agreementMessage{
			phase: p, signature: Signature{Kind: Admit, Root: NoRoot, Length: NoLength, Mode: Report},
			vote: vote{view: 3, accepted: true, proposal: proposal{view: 3}},
		}
		if err := e.Receive(0, joined(m.bytes())); err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.generation.next
	}
	next := phase(typeAccept)
	if next == nil {
		t.Fatal("accepted, and nothing is derived")
	}
	e.InstallMembers(4, []Member{{0, 1}, {1, 1}, {2, 3}})
	if err := next.Flush(ctx); err != nil || link.toldOf(2) != 1 {
		t.Errorf("told %d times before it is decided, %v", link.toldOf(2), err)
	}
	phase(typeCommit)
	if err := <-admitted; err != nil || link.toldOf(2) != 2 {
		t.Errorf("told %d times, %v", link.toldOf(2), err)
	}
}

// A process goes on to the next generation when the parts of tasks that it has taken over are
// done, or its caller waits no longer.
func TestAdmitWaitsForTasksThatWereTakenOver(t *testing.T) {
	for _, canceled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := newRecorded(t, Config{Rank: 1, View: 1})
			e.mu.Lock()
			o := e.call(0)
			e.calls.returned = 1
			e.mu.Unlock()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waited := make(chan error, 1)
			go func() { waited <- e.awaitFinished(ctx) }()
			synctest.Wait()
			select {
			case err := <-waited:
				t.Fatalf("it has not waited: %v", err)
			default:
			}
			if canceled {
				cancel()
				if !errors.Is(<-waited, context.Canceled) {
					t.Error("the caller has waited in vain")
				}
				return
			}
			e.mu.Lock()
			e.calls.completed = 1
			o.changed.Notify()
			e.mu.Unlock()
			if err := <-waited; err != nil {
				t.Error(err)
			}
		})
	}
}

// When a job is over, the processes that wait for the next generation are told, and no others.
func TestThoseWhoWaitAreDismissed(t *testing.T) {
	link := &counter{}
	e, err := New(Config{Size: 2, View: 1, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	sent := func() int32 {
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return link.sent.Load()
	}
	e.InstallMembers(2, []Member{{0, 1}, {1, 1}, {2, 2}, {3, 2}})
	before := sent()
	e.DismissWaiting()
	if n := sent() - before; n != 2 {
		t.Errorf("%d of 2 are told", n)
	}
}

// A process that waits says so to each other member of its view, once, and what it says lets another
// one that waits know that the job is gone. One that is dismissed learns that the job has ended.
func TestThoseWhoWaitTellEachOther(t *testing.T) {
	link := &keeper{}
	e, err := New(Config{Rank: 1, Size: 3, Waiting: 3, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	members := []Member{{1, 3}, {2, 2}}
	for view := uint64(3); view < 5; view++ {
		e.InstallMembers(view, members)
	}
	if err := e.Flush(t.Context()); err != nil || len(link.to(2)) != 1 || len(link.to(1)) != 0 {
		t.Fatalf("%v; it has told %v", err, link.sent)
	}
	other, _ := newRecorded(t, Config{Rank: 2, Waiting: 2})
	other.InstallMembers(3, members)
	if err := other.Receive(1, link.to(2)[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Comm().Admit(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("the other one: %v", err)
	}
	receiveNotice(t, e, 0, generationNotice{what: jobOver, view: 1})
	if _, err := e.Comm().Admit(t.Context()); !errors.Is(err, ErrJobEnded) {
		t.Errorf("dismissed: %v", err)
	}
}
