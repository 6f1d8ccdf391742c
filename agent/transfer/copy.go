package transfer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
)

// copying is a file that is sent to every member.
type copying struct {
	service  *Service
	group    Group
	source   *source
	number   uint64
	round    int
	peers    map[member]*peer
	view     uint64         // of which all members are peers
	offering sync.WaitGroup // to members that have joined meanwhile
	sending  chan struct{}  // has one for each chunk on its way to a single member
	due      time.Time      // when the next chunk may be sent
	progress Progress
	report   func(Progress)
	result   Result
}

// member names a process in a group.
type member struct {
	rank        int
	incarnation uint64
}

// peer is a member, as the sender sees it.
type peer struct {
	pleach.Member
	offered bool // it has the manifest, or gets it with the broadcasts
	gone    bool
	answer  answer
	idle    int // rounds without a new chunk
}

// Limits of a sender.
const (
	maxSending  = 8               // chunks on their way to single members
	maxIdle     = 3               // rounds in which a member may make no progress
	busyTimeout = 5 * time.Second // a member may serve no requests, as one that has just joined
	overTimeout = 2 * time.Second // to tell the others that the copy is over
)

// CopyFile is Copy for the file of a name.
func (s *Service) CopyFile(ctx context.Context, name, dir string, report func(Progress)) (Result, error) {
	file, err := os.Open(name)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Result{}, err
	}
	if !info.Mode().IsRegular() {
		return Result{}, fmt.Errorf("transfer: %s is not a regular file", name)
	}
	return s.Copy(ctx, File{Content: file, Name: info.Name(), Mode: info.Mode(), Size: info.Size()}, dir, report)
}

// Copy sends a file to a directory of every member of the group, this one included, and
// returns when each has it or cannot have it. It does not wait for members that leave the
// group; members that join it get the file, too. Report, if it is not nil, is called from
// time to time.
//
// The result tells what has become of each member, even after an error. If ctx ends, members
// keep the chunks that they have, and a later Copy of the same file continues from there.
func (s *Service) Copy(ctx context.Context, f File, dir string, report func(Progress)) (Result, error) {
	src, err := newSource(ctx, f, dir, s.group.Self().Incarnation, cmp.Or(s.chunk, chunkSize(f.Size)))
	if err != nil {
		return Result{}, err
	}
	m := src.manifest
	c := &copying{
		service: s, group: s.group, source: src, number: rand.Uint64(), report: report,
		peers: make(map[member]*peer), sending: make(chan struct{}, maxSending),
		result: Result{Name: m.name, Dir: m.dir, Size: m.size, Digest: m.digest().String(), Chunks: len(m.hashes)},
	}
	err = c.run(ctx)
	c.end(ctx)
	c.conclude()
	return c.result, err
}

// run sends the manifest, and then rounds of what members lack.
func (c *copying) run(ctx context.Context) error {
	for _, p := range c.meet() {
		p.offered = true // view synchrony: the members of this view get the broadcast
	}
	if err := c.broadcast(ctx, c.offer()); err != nil {
		return err
	}
	for {
		if err := c.ask(ctx); err != nil {
			return err
		}
		c.dropGone()
		lacking := c.lacking()
		if len(lacking) == 0 && c.view == c.group.View().Number {
			return nil
		}
		if err := c.spread(ctx, lacking); err != nil {
			return err
		}
		c.round++
		end := message{kind: endRun, copy: c.number, number: uint32(c.round)}
		if err := c.broadcast(ctx, end.appendHead(nil)); err != nil {
			return err
		}
	}
}

// offer is the message with the manifest.
func (c *copying) offer() []byte {
	m := message{kind: offer, copy: c.number, number: uint32(c.round)}
	return c.source.manifest.appendTo(m.appendHead(nil))
}

// broadcast sends a message to all members, and to this one.
func (c *copying) broadcast(ctx context.Context, data []byte) error {
	if err := c.group.BroadcastTopic(ctx, Topic, data); err != nil {
		return err
	}
	c.service.Receive(pleach.Message{From: c.group.Self().Rank, Topic: Topic, Data: data})
	return nil
}

// meet makes the members of the current view peers, and returns the new ones.
func (c *copying) meet() (joined []*peer) {
	v := c.group.View()
	if c.view == v.Number {
		return nil
	}
	c.view = v.Number
	for _, m := range v.Members() {
		k := member{m.Rank, m.Incarnation}
		if c.peers[k] == nil {
			c.peers[k] = &peer{Member: m}
			joined = append(joined, c.peers[k])
		}
	}
	return joined
}

// dropGone marks the peers that have left the group.
func (c *copying) dropGone() {
	v := c.group.View()
	c.progress.Members, c.progress.Settled = 0, 0
	for _, p := range c.peers {
		m, ok := v.Member(p.Rank)
		p.gone = !ok || m.Incarnation != p.Incarnation
		if !p.gone {
			c.progress.Members++
		}
		if !p.gone && p.settled() {
			c.progress.Settled++
		}
	}
	c.tell(0)
}

// settled reports whether a peer needs nothing more.
func (p *peer) settled() bool { return p.gone || p.answer.state >= done }

// ask asks all peers what they lack. They answer when they have all of the round.
func (c *copying) ask(ctx context.Context) error {
	c.meet()
	c.dropGone()
	errs := make(chan error, len(c.peers))
	asked := 0
	for _, p := range c.peers {
		if !p.settled() {
			asked++
			go func() { errs <- c.askPeer(ctx, p) }()
		}
	}
	var err error
	for range asked {
		err = cmp.Or(err, <-errs)
	}
	return err
}

// askPeer asks one peer what it lacks.
func (c *copying) askPeer(ctx context.Context, p *peer) error {
	before := p.answer
	q := (&message{kind: query, copy: c.number, number: uint32(c.round)}).appendHead(nil)
	q = binary.BigEndian.AppendUint64(q, p.Incarnation)
	if !p.offered {
		q = c.offer()
	}
	a, err := c.request(ctx, p, q)
	if err == nil && a.state == unknown { // it did not listen when the manifest came
		a, err = c.request(ctx, p, c.offer())
	}
	switch gone, refusal := new(pleach.GoneError), new(pleach.RequestError); {
	case errors.As(err, &gone):
		return nil // the next view says so
	case errors.As(err, &refusal):
		p.answer = failure(refusal)
		return nil
	case err != nil:
		return err
	}
	p.answer, p.offered = a, true
	p.idle++
	if before.state != a.state || a.lacks.count < before.lacks.count {
		p.idle = 0
	}
	if a.state == partial && p.idle >= maxIdle {
		p.answer = failure(fmt.Errorf("no chunk has arrived in %d rounds: %d are lacking", p.idle, a.lacks.count))
	}
	return nil
}

// request sends a request to a peer. One that is busy, or does not serve requests yet, is
// asked again for a while.
func (c *copying) request(ctx context.Context, p *peer, data []byte) (a answer, err error) {
	var reply []byte
	for deadline := time.Now().Add(busyTimeout); ; {
		if p.Rank == c.group.Self().Rank {
			reply, err = c.service.handle(ctx, pleach.Request{From: p.Rank, Name: Topic, Data: data})
		} else {
			reply, err = c.group.Request(ctx, p.Member, Topic, data)
		}
		busy := errors.Is(err, pleach.ErrOverloaded) || errors.Is(err, pleach.ErrNoHandler)
		if !busy || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(busyTimeout / 50):
		case <-ctx.Done():
		}
	}
	if err != nil || kind(data[0]) == chunk {
		return a, err
	}
	a, err = parseAnswer(reply, len(c.source.manifest.hashes))
	if err != nil {
		return failure(err), nil
	}
	return a, nil
}

// lacking returns the peers that lack chunks.
func (c *copying) lacking() (lacking []*peer) {
	for _, p := range c.peers {
		if !p.settled() {
			lacking = append(lacking, p)
		}
	}
	return lacking
}

// spread sends what peers lack. A chunk that few of them lack goes to those: as many as the
// root of a binomial tree has children, so that it costs this process no more.
func (c *copying) spread(ctx context.Context, lacking []*peer) error {
	few := bits.Len(uint(c.group.View().Size() - 1))
	var sent sync.WaitGroup
	defer c.offering.Wait()
	defer sent.Wait()
	c.plan(lacking)
	for i := range c.source.manifest.hashes {
		to := lackers(lacking, i)
		if len(to) == 0 {
			continue
		}
		c.welcome(ctx)
		_, length := c.source.manifest.span(i)
		if err := c.pace(ctx, length); err != nil {
			return err
		}
		data, err := c.source.message(c.number, i, c.round > 0)
		if err != nil {
			return err
		}
		if len(to) > few {
			c.result.Broadcast++
			err = c.broadcast(ctx, data)
		} else {
			err = c.send(ctx, &sent, to, data)
		}
		if err != nil {
			return err
		}
		c.tell(int64(length))
	}
	return nil
}

// pace waits until a chunk may be sent, if the file has a rate. What the group does not
// take in time is not made up for.
func (c *copying) pace(ctx context.Context, length int) error {
	if c.source.Rate <= 0 {
		return nil
	}
	now := time.Now()
	wait := c.due.Sub(now)
	c.due = now.Add(max(wait, 0) + time.Duration(float64(length)/float64(c.source.Rate)*float64(time.Second)))
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lackers returns the peers that lack a chunk.
func lackers(peers []*peer, i int) (lack []*peer) {
	for _, p := range peers {
		if p.answer.state == partial && p.answer.lacks.has(i) {
			lack = append(lack, p)
		}
	}
	return lack
}

// send sends a chunk to single members. A member that does not get it lacks it in the next
// round.
func (c *copying) send(ctx context.Context, sent *sync.WaitGroup, to []*peer, data []byte) error {
	for _, p := range to {
		select {
		case c.sending <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.result.Sent++
		sent.Go(func() {
			_, _ = c.request(ctx, p, data)
			<-c.sending
		})
	}
	return nil
}

// welcome offers the file to members that have joined, so that they get the rest of the
// round with the others.
func (c *copying) welcome(ctx context.Context) {
	for _, p := range c.meet() {
		c.offering.Go(func() { _ = c.askPeer(ctx, p) }) // the next round asks again
	}
}

// plan counts what is to be sent in a round.
func (c *copying) plan(lacking []*peer) {
	c.progress.Total = c.progress.Sent
	for i := range c.source.manifest.hashes {
		if len(lackers(lacking, i)) > 0 {
			_, length := c.source.manifest.span(i)
			c.progress.Total += int64(length)
		}
	}
}

// tell reports progress.
func (c *copying) tell(sent int64) {
	c.progress.Sent += sent
	if c.report == nil {
		return
	}
	c.report(c.progress)
}

// end tells the receivers that the copy is over.
func (c *copying) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), overTimeout)
	defer cancel()
	_ = c.broadcast(ctx, (&message{kind: over, copy: c.number}).appendHead(nil)) // or the next view tells them
}

// conclude completes the result.
func (c *copying) conclude() {
	c.dropGone()
	for _, p := range c.peers {
		r := MemberResult{Rank: p.Rank, ID: p.ID, Error: p.answer.why}
		switch {
		case p.answer.state == done:
			r.Outcome = Done
		case p.answer.state == present:
			r.Outcome = Present
		case p.gone:
			r.Outcome = Gone
		case p.answer.state == failed:
			r.Outcome = Failed
		default:
			r.Outcome = Unknown
		}
		c.result.Members = append(c.result.Members, r)
	}
	slices.SortFunc(c.result.Members, func(a, b MemberResult) int { return cmp.Compare(a.Rank, b.Rank) })
}
