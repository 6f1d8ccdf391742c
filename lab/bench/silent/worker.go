package silent

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
)

// System is what is measured.
type System struct {
	Name string
	// Start starts the member of this process, and returns when it knows the others. The
	// member hands messages to [Worker.Take].
	Start func(ctx context.Context, w *Worker) (Member, error)
}

// Member is the member of this process.
type Member interface {
	// Broadcast has the root send. It may not keep the payload.
	Broadcast(ctx context.Context, payload []byte) error
	// Received is how many messages of any kind the member has received, or 0 if the
	// system does not tell.
	Received() uint64
	Close() error
}

// Worker is one member in a process of its own.
type Worker struct {
	Place bootstrap.Assignment

	mu     sync.Mutex
	report report
	full   bool
}

// report is what a worker has seen. Times are those of the host's clock, in nanoseconds.
type report struct {
	// Sent are the times at which the root sent, at a pace.
	Sent []int64
	// Took are how long messages took, by number, at a pace; −1 for those not received.
	Took []int64
	// Count is how many messages have come, and Next the number behind the greatest.
	Count, Next uint64
	// Buckets are how many messages have come in each hundredth of a second since Started.
	Started int64
	Buckets []uint64
	// Views are when a view had so many members.
	Views []seen
	// Received is [Member.Received] when it began, when members were stopped, and now.
	Received [3]uint64
}

type seen struct {
	Members int
	At      int64
}

const bucket = 10 * time.Millisecond

// Take takes a message.
func (w *Worker) Take(payload []byte) {
	now := time.Now().UnixNano()
	if len(payload) < leastSize {
		return
	}
	sent, number := int64(binary.LittleEndian.Uint64(payload)), binary.LittleEndian.Uint64(payload[8:])
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &w.report
	r.Count++
	r.Next = max(r.Next, number+1)
	if w.full {
		at := max(now-r.Started, 0) / int64(bucket)
		for int64(len(r.Buckets)) <= at {
			r.Buckets = append(r.Buckets, 0)
		}
		r.Buckets[at]++
		return
	}
	for uint64(len(r.Took)) <= number {
		r.Took = append(r.Took, -1)
	}
	if r.Took[number] < 0 {
		r.Took[number] = now - sent
	}
}

// Sees takes in that this member is in a view of so many members.
func (w *Worker) Sees(members int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.Views = append(w.report.Views, seen{members, time.Now().UnixNano()})
}

// order is what [Run] tells a worker.
type order struct {
	// Do is begin, mark (members are about to be stopped), end (the root sends no more) or
	// report.
	Do       string
	Interval time.Duration
	Size     int
}

// Serve is a process that [Run] starts. It runs a member until the standard input ends.
func Serve(ctx context.Context, system System) error {
	place, err := bootstrap.Detect(os.Getenv)
	if err != nil {
		return err
	}
	w := &Worker{Place: place}
	m, err := system.Start(ctx, w)
	if err != nil {
		return fmt.Errorf("%s, rank %d: %w", system.Name, place.Rank, err)
	}
	if err := w.obey(ctx, m, os.Stdin, os.Stdout); err != nil {
		return err
	}
	return m.Close()
}

// obey does what [Run] tells, and answers each order with a line.
func (w *Worker) obey(ctx context.Context, m Member, in io.Reader, out io.Writer) error {
	answers, orders := json.NewEncoder(out), bufio.NewScanner(in)
	var root sync.WaitGroup
	sending, end := context.WithCancel(ctx)
	defer root.Wait()
	defer end()
	if err := answers.Encode(report{}); err != nil { // it is ready
		return err
	}
	for orders.Scan() {
		var o order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return err
		}
		w.mu.Lock()
		answer := report{}
		switch o.Do {
		case "begin":
			w.full = o.Interval == 0
			w.report.Started, w.report.Received[0] = time.Now().UnixNano(), m.Received()
			if w.Place.Rank == 0 {
				root.Go(func() { w.send(sending, m, o) })
			}
		case "mark":
			w.report.Received[1] = m.Received()
		case "end":
			end()
		case "report":
			w.report.Received[2] = m.Received()
			answer = w.report
		}
		w.mu.Unlock()
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return orders.Err()
}

// send broadcasts until the end.
func (w *Worker) send(ctx context.Context, m Member, o order) {
	payload := make([]byte, o.Size)
	for number := uint64(0); ctx.Err() == nil; number++ {
		now := time.Now().UnixNano()
		binary.LittleEndian.PutUint64(payload, uint64(now))
		binary.LittleEndian.PutUint64(payload[8:], number)
		if m.Broadcast(ctx, payload) != nil {
			return // the end, or the group's; what is missing shows it
		}
		w.mu.Lock()
		w.report.Next = number + 1
		if !w.full {
			w.report.Sent = append(w.report.Sent, now)
		}
		w.mu.Unlock()
		if o.Interval > 0 {
			time.Sleep(o.Interval)
		}
	}
}
