package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/replicated"
)

// What members keep in memory, in one order: registers, a queue, and leases. A register has the
// same clients as one that has an owner (registers.go).

// joinState makes this process a member of a group that keeps machines.
func (m *member) joinState(ctx context.Context, config pleach.Config, seeds []string) (w work, err error) {
	values, table := values{}, lease.NewTable()
	begins := m.newOrigin()
	m.replica, err = replicated.Join(ctx, replicated.Config{
		Group: config, Machines: map[string]replicated.Machine{
			"values": values, "queue": new(fifo), "leases": table,
			"origin": begins,
		},
	}, seeds...)
	if err != nil {
		return w, err
	}
	m.group = m.replica.Group()
	m.pause = statePause
	m.do = func(ctx context.Context, r request) (value string, err error) {
		if !r.Write {
			err = m.replica.Read(ctx, func() { value = values[r.Key] })
			return value, err
		}
		data, err := json.Marshal(r)
		if err != nil {
			return "", err
		}
		result, err := m.replica.Propose(ctx, "values", data)
		return string(result), err
	}
	leases, err := lease.New(lease.Config{
		Replica: m.replica, Machine: "leases", Table: table, TTL: lockTTL,
		Drift: lockDrift, DataDir: filepath.Join(m.dir, "marks-"+m.id),
	})
	if err != nil {
		return w, err
	}
	w.send = append(w.send, m.call, m.call, m.useQueue, func(ctx context.Context) { m.noteOrigin(ctx, begins) })
	for lock := range locks {
		w.send = append(w.send, func(ctx context.Context) { m.contend(ctx, leases, lock) })
	}
	w.close = func(context.Context) error { return m.replica.Close() }
	return w, nil
}

// values are registers.
type values map[int]string

func (v values) Apply(command []byte) []byte {
	var r request
	if json.Unmarshal(command, &r) == nil {
		v[r.Key] = r.Value
	}
	return []byte(r.Value)
}

func (v values) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(v) }

func (v values) Restore(r io.Reader) error {
	clear(v)
	return json.NewDecoder(r).Decode(&v)
}

// fifo is a queue. A command is the element to put, or empty to take one.
type fifo []string

func (f *fifo) Apply(command []byte) []byte {
	if len(command) > 0 {
		*f = append(*f, string(command))
		return command
	}
	if len(*f) == 0 {
		return nil
	}
	first := (*f)[0]
	*f = (*f)[1:]
	return []byte(first)
}

func (f *fifo) Snapshot(w io.Writer) error {
	_, err := io.WriteString(w, strings.Join(*f, "\n"))
	return err
}

func (f *fifo) Restore(r io.Reader) error {
	text, err := io.ReadAll(r)
	*f = nil
	if len(text) > 0 {
		*f = strings.Split(string(text), "\n")
	}
	return err
}

const (
	queueKey   = -1                    // of calls of the queue
	statePause = 10 * time.Millisecond // there are calls on their way at any moment
	queuePause = 10 * time.Millisecond
	queueLimit = 10 * time.Second // an element that was taken without an answer is hard to judge
)

// useQueue puts and takes elements, one after the other.
func (m *member) useQueue(ctx context.Context) {
	for pause(ctx, queuePause) {
		op, put := m.draw()
		var command string
		if put {
			command = m.unique(op)
		}
		m.journal.write(Event{Type: evCall, Op: op, Key: queueKey, Write: put, Value: command})
		calling, cancel := context.WithTimeout(ctx, queueLimit)
		result, err := m.replica.Propose(calling, "queue", []byte(command))
		cancel()
		if err == nil {
			m.journal.write(Event{Type: evReturn, Op: op, Key: queueKey, Write: put, Value: string(result)})
		}
	}
}
