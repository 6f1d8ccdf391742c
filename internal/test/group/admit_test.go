package group_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// elastic is a job of many steps that takes replacements in.
type elastic struct {
	steps  int64
	before func(w *pleach.World, step int64) error
}

func (p *elastic) run(ctx context.Context, w *pleach.World) error {
	step, joined := int64(0), 0
	for step < p.steps {
		if err := p.before(w, step); err != nil {
			return err
		}
		a, err := w.Admit(ctx)
		if err != nil {
			return err
		}
		joined += len(a.Joined)
		if len(a.Joined) > 0 {
			has := []int64{step}
			state, err := collective.Broadcast(ctx, w, a.Root, has,
				collective.Restore(func(context.Context, int) ([]int64, error) { return has, nil }))
			if err != nil {
				return err
			}
			step = state[0]
		}
		now := step
		input := func(task int) []int64 { return []int64{int64(task) + now} }
		sum, err := collective.Allreduce(ctx, w, input(w.Rank()), collective.Sum[int64](),
			collective.Restore(func(_ context.Context, task int) ([]int64, error) { return input(task), nil }))
		if err != nil {
			return err
		}
		if n := int64(w.Size()); sum[0] != n*(n-1)/2+n*now {
			return fmt.Errorf("rank %d, step %d: %d", w.Rank(), now, sum[0])
		}
		step++
	}
	if tasks := w.Tasks(); !slices.Equal(tasks, []int{w.Rank()}) || joined == 0 || len(w.Failed()) > 0 {
		return fmt.Errorf("rank %d: tasks %v, failed %v, %d joined", w.Rank(), tasks, w.Failed(), joined)
	}
	return w.Finalize(ctx)
}

// replacement is a process that takes the place of one of the worlds.
func replacement(ctx context.Context, of *pleach.World) (*pleach.World, error) {
	var addresses []string
	for _, m := range of.View().Members() {
		addresses = append(addresses, m.Address)
	}
	return pleach.NewWorld(ctx, pleach.Config{
		Group: "job", Addresses: addresses, Rank: of.Rank(),
		Job: pleach.Job{Respawned: true},
	})
}

// A process of a job dies, and then its replacement does. Each is replaced, and owns its
// task again.
func TestWorldAdmit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	worlds := newWorlds(t, 4, unchanged)
	incarnation := uint64(1) // of rank 2, as rank 0 knows it
	var started atomic.Int64
	var others sync.WaitGroup
	errDied := errors.New("died")
	var p elastic
	p.steps = 30
	restart := func() {
		started.Add(1)
		w, err := replacement(ctx, worlds[2])
		if err != nil {
			t.Error(err)
			cancel()
			return
		}
		defer w.Abort()
		if err := collective.Barrier(ctx, w); !w.Respawned() || !errors.Is(err, pleach.ErrNotAdmitted) {
			t.Errorf("a replacement before it is admitted: %v", err)
		}
		if err := p.run(ctx, w); err != nil && !errors.Is(err, errDied) {
			t.Errorf("replacement: %v", err)
		}
	}
	p.before = func(w *pleach.World, step int64) error {
		deaths := started.Load()
		switch {
		case w.Rank() == 2 && (step == 3 && deaths == 0 || step == 12 && deaths == 1):
			_ = w.Abort()
			others.Go(restart)
			return errDied
		case w.Rank() == 0 && (step == 8 || step == 20): // the replacement is not to be late
			var err error
			incarnation, err = awaitReplacement(ctx, w, incarnation)
			return err
		}
		return nil
	}
	for r, err := range inAll(worlds, func(w *pleach.World) error { return p.run(ctx, w) }) {
		if err != nil && r != 2 {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	others.Wait()
	if n := started.Load(); n != 2 {
		t.Errorf("%d replacements", n)
	}
}

// awaitReplacement waits for a view with another process at rank 2, and returns its
// incarnation.
func awaitReplacement(ctx context.Context, w *pleach.World, former uint64) (uint64, error) {
	for v := range w.Group().Views(ctx) {
		for _, m := range v.Members() {
			if m.Rank == 2 && m.Incarnation > former {
				return m.Incarnation, nil
			}
		}
	}
	return former, ctx.Err()
}

// A replacement that waits learns that the job has ended, and one that finds no process of
// its job gives up.
func TestWorldReplacementComesTooLate(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	worlds := newWorlds(t, 3, unchanged)
	if err := worlds[1].Abort(); err != nil {
		t.Fatal(err)
	}
	late, err := replacement(ctx, worlds[1])
	if err != nil {
		t.Fatal(err)
	}
	defer late.Abort()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := late.Admit(ctx); !errors.Is(err, pleach.ErrJobEnded) {
			t.Errorf("got %v", err)
		}
	})
	for r, err := range inAll([]*pleach.World{worlds[0], worlds[2]},
		func(w *pleach.World) error { return w.Finalize(ctx) }) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	waiting.Wait()
	var addresses []string
	for _, m := range worlds[1].View().Members() {
		addresses = append(addresses, m.Address)
	}
	_, err = pleach.NewWorld(ctx, pleach.Config{
		Group: "job", Addresses: addresses, Rank: 1,
		Job: pleach.Job{Respawned: true}, Detection: pleach.Detection{StartTimeout: 50 * time.Second},
	})
	if err == nil || !strings.Contains(err.Error(), "all processes of the job are gone") || ctx.Err() != nil {
		t.Errorf("without a job: %v", err)
	}
}
