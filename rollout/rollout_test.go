package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/rollout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what happens within a second elsewhere.
const patience = time.Minute

// member is a process with a setting, and what it was over time.
type member struct {
	*rollout.Rollouts
	replica *replicated.Replica
	id      string

	mu       sync.Mutex
	settings []string
	holds    chan struct{} // if not nil, Apply waits until it is closed
}

func (m *member) set(ctx context.Context, r rollout.Release) error {
	if m.holds != nil {
		select {
		case <-m.holds:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = append(m.settings, string(r.Data))
	return nil
}

// gate fails where a bad setting is.
func (m *member) gate(_ context.Context, r rollout.Release) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.settings[len(m.settings)-1]; strings.Contains(last, "bad") {
		return fmt.Errorf("%s is %s", r.Gate, last)
	}
	return nil
}

func (m *member) history() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.settings, " ")
}

// start makes a group with members in three failure domains.
func start(t *testing.T, n int, holds chan struct{}) (members []*member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var seeds []string
	for i := range n {
		m := &member{id: fmt.Sprint("m", i), holds: holds}
		table := rollout.NewTable()
		var err error
		m.replica, err = replicated.Join(ctx, replicated.Config{
			Group:    pleach.Config{ID: m.id, FailureDomain: fmt.Sprint("zone-", i%3)},
			Machines: map[string]replicated.Machine{"rollouts": table},
		}, seeds...)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []string{m.replica.Group().Self().Address}
		m.Rollouts, err = rollout.New(rollout.Config{
			Replica: m.replica, Machine: "rollouts", Table: table, Apply: m.set, Gate: m.gate, Revert: m.set,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.replica.Abort(); m.Close() })
		members = append(members, m)
	}
	return members
}

// wait waits for the end of a rollout as a member sees it.
func (m *member) wait(t *testing.T, id string) rollout.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := m.Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A good payload reaches all members, once. A bad one reaches the first wave alone, which reverts it.
func TestGoodAndBadRollout(t *testing.T) {
	members := start(t, 6, nil)
	id, err := members[4].Start(t.Context(), rollout.Spec{Payload: []byte("good"), Hold: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if s := members[1].wait(t, id); s.Phase != rollout.Done || s.Wave != 3 {
		t.Errorf("got %+v", s)
	}
	id, err = members[4].Start(t.Context(), rollout.Spec{
		Name: "bad one", Payload: []byte("bad"), Revert: []byte("good-again"), Gate: "setting", Waves: "1,50%,100%",
	})
	if err != nil {
		t.Fatal(err)
	}
	s := members[2].wait(t, id)
	if s.Phase != rollout.Reverted || s.Wave != 1 || s.Reason != "wave 1 of 3: m0: setting is bad" {
		t.Errorf("got %+v", s)
	}
	for _, m := range members {
		want := "good"
		if m.id == "m0" {
			want = "good bad good-again"
		}
		if m.history() != want {
			t.Errorf("%s has had %q, want %q", m.id, m.history(), want)
		}
	}
	if err := members[0].Revert(t.Context(), id); !errors.Is(err, rollout.ErrLate) {
		t.Errorf("reverted again: %v", err)
	}
	if err := members[0].Stop(t.Context(), "x"); !errors.Is(err, rollout.ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
	list, err := members[5].List(t.Context())
	if err != nil || len(list) != 2 || list[1].Name != "bad one" {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := members[0].Revert(t.Context(), list[0].ID); !errors.Is(err, rollout.ErrNoRevert) {
		t.Errorf("no revert: %v", err)
	}
}

// The process that has started a rollout, which is also in its first wave, dies while the first wave
// applies the payload. The rollout ends.
func TestRolloutOutlivesItsStarter(t *testing.T) {
	holds := make(chan struct{})
	members := start(t, 5, holds)
	id, err := members[0].Start(t.Context(), rollout.Spec{Payload: []byte("good"), Waves: "3,100%"})
	if err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "m0 applies the payload", func() bool {
		s, err := members[1].Status(t.Context(), id)
		return err == nil && slices.ContainsFunc(s.Members, func(m rollout.MemberStatus) bool {
			return m.ID == "m0" && m.State == "taken"
		})
	})
	_ = members[0].replica.Abort()
	members[0].Close()
	testutil.Eventually(t, "m0 is lost", func() bool {
		s, err := members[1].Status(t.Context(), id)
		return err == nil && s.Members[0].State == "lost"
	})
	if s, _ := members[1].Status(t.Context(), id); s.Wave != 1 || s.Paused {
		t.Errorf("got %+v", s)
	}
	close(holds)
	if s := members[3].wait(t, id); s.Phase != rollout.Done {
		t.Errorf("got %+v", s)
	}
	for _, m := range members[1:] {
		if m.history() != "good" {
			t.Errorf("%s has had %q", m.id, m.history())
		}
	}
}

// An operator pauses, resumes, stops and reverts, at any member.
func TestOperator(t *testing.T) {
	members := start(t, 3, nil)
	id, err := members[0].Start(t.Context(), rollout.Spec{
		Payload: []byte("new"), Revert: []byte("old"), Waves: "1,100%", Hold: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	phase := func(m *member) rollout.Phase { s, _ := m.Status(t.Context(), id); return s.Phase }
	testutil.Eventually(t, "the first wave is held", func() bool { return phase(members[2]) == rollout.Holding })
	for _, step := range []struct {
		do   func(context.Context, string) error
		want error
	}{
		{members[1].Resume, rollout.ErrLate},
		{members[1].Pause, nil},
		{members[2].Pause, rollout.ErrLate},
		{members[2].Resume, nil},
		{members[1].Stop, nil},
		{members[1].Pause, rollout.ErrLate},
		{members[0].Revert, nil},
	} {
		if err := step.do(t.Context(), id); !errors.Is(err, step.want) {
			t.Errorf("got %v, want %v", err, step.want)
		}
	}
	if s := members[0].wait(t, id); s.Phase != rollout.Reverted {
		t.Errorf("got %+v", s)
	}
	testutil.Eventually(t, "the end", func() bool { return phase(members[2]) == rollout.Reverted })
	if got := members[0].history(); got != "new old" || members[1].history() != "" {
		t.Errorf("m0 has had %q, m1 %q", got, members[1].history())
	}
}

func TestWrongConfigsAndSpecs(t *testing.T) {
	m := start(t, 1, nil)[0]
	set := func(context.Context, rollout.Release) error { return nil }
	for _, wrong := range []rollout.Config{
		{}, {Replica: m.replica, Machine: "rollouts", Table: rollout.NewTable(), Apply: set},
	} {
		if _, err := rollout.New(wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
	for _, wrong := range []rollout.Spec{
		{Waves: "50%"}, {Hold: -1}, {Gate: strings.Repeat("x", 256)}, {Payload: make([]byte, rollout.MaxPayload+1)},
	} {
		if _, err := m.Start(t.Context(), wrong); !errors.Is(err, rollout.ErrSpec) {
			t.Errorf("got %v", err)
		}
	}
}
