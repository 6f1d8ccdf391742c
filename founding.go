package pleach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/dedup"
	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// This file drives package founding: processes that are started alike find each other
// through their seeds, and begin a group together unless one of them finds a running
// one. A candidate already listens at its address, and answers requests there.

const (
	// foundingTimeout bounds a request to another candidate.
	foundingTimeout = 2 * time.Second
	// findingTimeout bounds how long a group that was found may take to let a process
	// join, and findingRounds how many times its members are asked. After that the process
	// looks again: the group may have ended meanwhile, or only have seats.
	findingTimeout = 5 * time.Second
	findingRounds  = 4
	// logInterval is how often a candidate logs what it waits for.
	logInterval = 5 * time.Second
)

// joinOrBegin joins the group that the seeds know, or begins one with others.
func (c *Config) joinOrBegin(ctx context.Context, s *initialState) error {
	defer s.founder.close()
	for {
		began, found, err := s.founder.await(ctx)
		switch {
		case err != nil:
			return err
		case began != nil:
			return s.begin(began)
		}
		timed, cancel := context.WithTimeout(ctx, findingTimeout)
		err = c.requestJoin(timed, s, append([]string{found}, s.seeds...), findingRounds)
		cancel()
		if err == nil || ctx.Err() != nil || permanent(err) {
			return err
		}
		s.founder.lost()
	}
}

// begin makes the candidates the first view, with the highest protocol version that all of
// them speak.
func (s *initialState) begin(began []founding.Candidate) (err error) {
	members := make([]membership.Member, len(began))
	for i, m := range began {
		members[i] = membership.Member{Identity: m.ID, Address: m.Address, Domain: m.Domain, Incarnation: member.FirstIncarnation, Nonce: m.Nonce, Version: m.Version}
	}
	if s.view, err = membership.FirstView(members); err != nil {
		return err
	}
	if err := speaks(s.view.Version); err != nil {
		return err
	}
	s.began = began
	for _, m := range s.view.Members.All() {
		if m.Identity == s.self.Identity {
			s.self = *m
		}
	}
	return nil
}

// founder drives the machine of a candidate.
type founder struct {
	config  *Config
	client  tcp.Config
	seeds   []string
	start   time.Time
	changed chan struct{} // there may be something to do
	ctx     context.Context
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	mu       sync.Mutex
	machine  *founding.Machine
	hopeless map[string]error // seeds that cannot be asked, whatever happens
	causes   dedup.Causes
	logged   time.Time
}

// newFounder makes the machine of a candidate.
func (c *Config) newFounder(s *initialState) *founder {
	self := founding.Candidate{ID: s.self.Identity, Nonce: s.self.Nonce, Address: s.self.Address, Domain: s.self.Domain, Version: s.self.Version}
	starts := uint64(0)
	if s.data != nil {
		starts = s.data.starts
	}
	f := &founder{
		config: c, client: c.client(nil), seeds: s.seeds, start: time.Now(), changed: make(chan struct{}, 1), hopeless: make(map[string]error),
		machine: founding.New(founding.Config{Self: self, Expect: c.Expect, Seeds: s.seeds, Starts: starts}),
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// await drives the machine until there is a group.
func (f *founder) await(ctx context.Context) (began []founding.Candidate, member string, err error) {
	for {
		deadline := f.step()
		f.mu.Lock()
		began, member = f.machine.Outcome()
		err = f.unable(ctx)
		f.mu.Unlock()
		switch {
		case began != nil:
			f.config.Logger.Info("group begun", "group", f.config.Group, "members", len(began))
			return began, "", nil
		case member != "":
			f.config.Logger.Info("group found", "group", f.config.Group, "member", member)
			return nil, member, nil
		case err != nil:
			return nil, "", err
		}
		timer := time.NewTimer(deadline)
		select {
		case <-f.changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// step sends the requests that are due, and returns when the next ones are.
func (f *founder) step() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		address, r, ok := f.machine.Next(f.now())
		if !ok {
			break
		}
		f.asking.Go(func() { f.ask(address, &r) })
	}
	if time.Since(f.logged) > logInterval {
		f.logged = time.Now()
		known, _ := f.machine.Known()
		f.config.Logger.Info("looking for the group, or for processes to begin it with", "group", f.config.Group, "found", known, "expected", f.config.Expect)
	}
	return time.Duration(f.machine.Deadline() - f.now())
}

func (f *founder) now() protocol.Time { return protocol.Time(time.Since(f.start)) + 1 }

// unable returns why this process cannot become a member, within f.mu.
func (f *founder) unable(ctx context.Context) error {
	if len(f.seeds) > 0 && len(f.hopeless) == len(f.seeds) {
		return f.hopeless[f.seeds[0]]
	}
	if ctx.Err() == nil {
		return nil
	}
	known, founder := f.machine.Known()
	if founder.Nonce != 0 {
		return fmt.Errorf("%w: %d of %d expected processes found, and waiting for %q at %s to begin", ctx.Err(), known, f.config.Expect, founder.ID, founder.Address)
	}
	return fmt.Errorf("%w: %d of %d expected processes found", ctx.Err(), known, f.config.Expect)
}

// ask sends one request.
func (f *founder) ask(address string, r *founding.Request) {
	timed, cancel := context.WithTimeout(f.ctx, foundingTimeout)
	defer cancel()
	b, err := tcp.Request(timed, f.client, address, control.Encode(control.Founding{Request: *r}))
	var reply founding.Reply
	if err == nil {
		reply, err = founding.DecodeReply(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer give(f.changed)
	delete(f.hopeless, address)
	if err == nil {
		f.machine.HandleReply(f.now(), address, &reply)
		return
	}
	f.machine.HandleFailure(f.now(), address, errors.Is(err, syscall.ECONNREFUSED))
	if permanent(err) && slices.Contains(f.seeds, address) {
		f.hopeless[address] = err
	}
	if _, changed := f.causes.Changed(address, err); changed && f.ctx.Err() == nil {
		f.config.Logger.Info("request is retried", "group", f.config.Group, "member", address, "cause", err)
	}
}

// lost says that the group that was found has not let this process join.
func (f *founder) lost() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.machine.Lost(f.now())
}

// close ends the search.
func (f *founder) close() {
	f.cancel()
	f.asking.Wait()
}

// answer answers another candidate.
func (f *founder) answer(r *founding.Request) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply := f.machine.Handle(f.now(), r)
	give(f.changed)
	return reply.Encode(nil)
}

// answerFounding answers a candidate that looks for a group: here it is. A candidate
// that is in the first view enters it as long as that is the current one.
func (g *Group) answerFounding(r *founding.Request) []byte {
	began := g.began
	if g.view.Load().Number > 1 {
		began = nil
	}
	reply := founding.Answer(founding.Candidate{ID: g.self.Identity, Address: g.self.Address}, began, r)
	return reply.Encode(nil)
}
