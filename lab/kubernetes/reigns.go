package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// reign is a time in which an agent was certainly the leader of a view with a quorum: it said so
// before and after, in the same view.
type reign struct {
	pod      string
	view     uint64
	from, to time.Time
}

// reigns are those of all agents, which are asked all the time.
type reigns struct {
	end      context.CancelFunc
	watching sync.WaitGroup

	mu  sync.Mutex
	all []reign
}

// watchReigns begins to ask the agents of the pair.
func watchReigns(ctx context.Context, agents func(context.Context) map[string]agent) *reigns {
	ctx, end := context.WithCancel(ctx)
	r := &reigns{end: end}
	for i := range 2 {
		r.watching.Go(func() {
			for ctx.Err() == nil {
				if a, ok := agents(ctx)[podOf(i)]; ok {
					r.follow(ctx, a)
				}
				sleep(ctx, 100*time.Millisecond)
			}
		})
	}
	return r
}

// follow asks a process until it does not answer.
func (r *reigns) follow(ctx context.Context, a agent) {
	c := a.dial()
	var now *reign // nil: it was not a leader
	for ctx.Err() == nil {
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, time.Second)
		status, err := c.Status(limited)
		m, membersErr := c.Members(limited)
		cancel()
		if err != nil || membersErr != nil {
			break
		}
		leads := status.Quorum.OK && m.Leader == m.Self && m.View == status.View
		switch {
		case !leads:
			r.add(now)
			now = nil
		case now == nil || now.view != m.View:
			r.add(now)
			now = &reign{a.pod, m.View, time.Now(), time.Now()}
		default:
			now.to = asked
		}
		sleep(ctx, 10*time.Millisecond)
	}
	r.add(now)
}

func (r *reigns) add(one *reign) {
	if one == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *one)
}

// stop ends the questions, and returns how many reigns of two agents overlapped.
func (r *reigns) stop() int {
	r.end()
	r.watching.Wait()
	return overlaps(r.all)
}

// overlaps counts pairs of reigns of different agents at the same time.
func overlaps(all []reign) (n int) {
	slices.SortFunc(all, func(a, b reign) int { return a.from.Compare(b.from) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.pod != b.pod && b.from.Before(a.to) && b.from.Before(b.to) {
				n++
			}
		}
	}
	return n
}
