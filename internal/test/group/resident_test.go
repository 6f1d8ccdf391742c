package group_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
)

// A resident is a member as a process of its own that lives through views: when
// the others have gone on without it, it rejoins. It does as it is told, a line
// each: to join, to be quiet, and by the end of its input, to end. It tells what it
// does and sees on its output, all of it, for the test to judge:
//
//	initial RANK              it is a member, at first or again
//	view NUMBER RANK,...    it is in this view; who is slow may skip some
//	sent NUMBER             a broadcast has returned nil
//	wrap ERROR            one has returned an error, other than the last
//	have VIEW ROOT NUMBER NANOSECONDS   a message has come, sent then
//	quiet                   it broadcasts nothing more
//	late DURATION           the system has let it wait for so long
//	over ERROR              its membership is
//	error ERROR             it gives up
//
// and whatever the group logs.
type residentConfig struct {
	Pace time.Duration // a broadcast each; 0: none

	Create bool     // the group
	Seeds  []string // whose group it joins; otherwise it starts with Addresses

	// As in pleach.Config.
	Addresses        []string
	Listen           string
	Rank             int
	SuspicionTimeout time.Duration
}

// begin makes the process a member.
func (c *residentConfig) begin(ctx context.Context) (*pleach.Group, error) {
	config := pleach.Config{
		Group: "residents", Addresses: c.Addresses, Rank: c.Rank, Listen: c.Listen,
		Detection: pleach.Detection{SuspicionTimeout: c.SuspicionTimeout},
		Logger:    slog.New(slog.NewTextHandler(os.Stdout, nil)),
	}
	switch {
	case c.Create:
		return pleach.Create(ctx, config)
	case len(c.Seeds) > 0:
		return pleach.Join(ctx, config, c.Seeds...)
	default:
		return pleach.Start(ctx, config)
	}
}

// broadcastPatience bounds a broadcast: a root that may not go on has to say so.
const broadcastPatience = 2 * time.Second

// rejoinPatience bounds a resident's return. Tests keep hosts apart for up to 40 s (awaitNoQuorum),
// and a resident cannot come back before.
const rejoinPatience = 90 * time.Second

// resident is the running process.
type resident struct {
	pace   time.Duration
	quiet  chan struct{} // closed when it is to be
	number int           // of its next message; a message that failed has one too
	failed string        // told last
}

func (c *residentConfig) run() error {
	input := bufio.NewScanner(os.Stdin)
	input.Scan() // the word to join
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &resident{pace: c.Pace, quiet: make(chan struct{})}
	go func() {
		if input.Scan() {
			close(r.quiet)
		}
		for input.Scan() {
		}
		cancel()
	}()
	group, err := c.begin(ctx)
	for err == nil {
		if err = r.live(ctx, group); err != nil || ctx.Err() != nil {
			return errors.Join(err, group.Abort())
		}
		fmt.Println("over", group.Err())
		patience, stop := context.WithTimeout(ctx, rejoinPatience)
		err = group.Rejoin(patience)
		stop()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// live is a resident's life until its membership or ctx ends.
func (r *resident) live(ctx context.Context, group *pleach.Group) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Println("begin", group.Rank())
	var wg sync.WaitGroup
	wg.Go(func() { tellLate(ctx) })
	wg.Go(func() { r.broadcast(ctx, group) })
	wg.Go(func() {
		if err = r.take(ctx, group); err != nil {
			cancel()
		}
	})
	for v := range group.Views(ctx) {
		if v.Err != nil {
			continue // not a new view: the quorum is lost
		}
		ranks := make([]string, v.Size())
		for i, m := range v.Members() {
			ranks[i] = fmt.Sprint(m.Rank)
		}
		fmt.Println("view", v.Number, strings.Join(ranks, ","))
	}
	cancel()
	wg.Wait()
	return err
}

// broadcast sends a message each pace, until it is to be quiet. A message that
// wrap is not sent again.
func (r *resident) broadcast(ctx context.Context, group *pleach.Group) {
	if r.pace == 0 {
		return
	}
	ticker := time.NewTicker(r.pace)
	defer ticker.Stop()
	for {
		select {
		case <-r.quiet:
			fmt.Println("quiet")
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		patience, stop := context.WithTimeout(ctx, broadcastPatience)
		err := group.Broadcast(patience, numbered(group.Rank(), r.number, 64))
		stop()
		switch {
		case err == nil:
			fmt.Println("sent", r.number)
		case ctx.Err() == nil && err.Error() != r.failed:
			r.failed = err.Error()
			fmt.Println("failed", r.failed)
		}
		r.number++
	}
}

// tellLate tells when this process did not get to run: it may look silent then,
// and rightly so.
func tellLate(ctx context.Context) {
	const often = 20 * time.Millisecond
	for due := time.Now().Add(often); ctx.Err() == nil; due = time.Now().Add(often) {
		time.Sleep(time.Until(due))
		if late := time.Since(due); late > 5*often {
			fmt.Println("late", late)
		}
	}
}

// prefetch takes messages.
func (r *resident) take(ctx context.Context, group *pleach.Group) error {
	for m, err := range group.Messages(ctx) {
		if _, ok := errors.AsType[*pleach.GapError](err); ok {
			continue
		}
		if err != nil {
			return err
		}
		root, number := int(binary.BigEndian.Uint32(m.Data)), int(binary.BigEndian.Uint32(m.Data[4:]))
		if root != m.From || binary.BigEndian.Uint64(m.Data[8:]) != checksum(m.Data) {
			return fmt.Errorf("message %d of root %d came from %d, or was changed", number, root, m.From)
		}
		fmt.Println("have", m.View, root, number, binary.BigEndian.Uint64(m.Data[16:]))
	}
	return nil
}
