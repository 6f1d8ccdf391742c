package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/shard"
)

// A register is a key whose owner keeps its value in memory. What is written goes to a store
// that all members share, too, and which refuses tokens below the highest that it has seen.
// Reads are not checked there: they are right only if no other process owns the key.

// Some reads take serveSteps times serveStep.
const (
	serveSteps = 3
	serveStep  = 10 * time.Millisecond
)

// errNotDone is the error of a call that has certainly not been done.
var errNotDone = errors.New("not done")

// request is a read or a write of a register.
type request struct {
	Key   int
	Write bool
	Value string
}

func (r *request) name() string { return fmt.Sprint("register-", r.Key) }

// cached is a register in the memory of its owner.
type cached struct {
	token uint64
	value string
}

// store is the directory that all members share, and the memory of this one.
type store struct {
	dir    string
	cache  map[int]cached
	locked sync.Mutex
}

// serve does what is requested, if this process owns the key.
func (m *member) serve(ctx context.Context, r request) (value string, err error) {
	err = m.shards.Serve(ctx, r.name(), func(ctx context.Context, token uint64) error {
		began := observe()
		value, err = m.store.do(r, token)
		until := observe()
		if until-began > int64(5*serveStep) {
			until = began // it was stopped meanwhile
		}
		if !r.Write {
			until = m.linger(ctx, until)
		}
		m.journal.write(Event{
			Type: evServe, At: began, Until: until, Partition: m.shards.Partition(r.name()), Token: token,
			Key: r.Key, Write: r.Write,
		})
		return err
	})
	if errors.Is(err, shard.ErrNotOwner) || errors.Is(err, shard.ErrClosed) {
		err = errNotDone
	}
	return value, err
}

// linger has a read take its time now and then, while the owner may. It returns until when the
// process has surely worked: one that was stopped did not, and may see its context end a moment
// after it resumes.
func (m *member) linger(ctx context.Context, until int64) int64 {
	if _, long := m.draw(); !long {
		return until
	}
	for range serveSteps {
		if !pause(ctx, serveStep) || observe()-until > int64(5*serveStep) {
			break
		}
		until = observe()
	}
	return until
}

// do reads or writes a register with a token.
func (s *store) do(r request, token uint64) (string, error) {
	s.locked.Lock()
	defer s.locked.Unlock()
	c, ok := s.cache[r.Key]
	if !ok || c.token != token {
		value, err := s.load(r.Key, token)
		if err != nil {
			return "", err
		}
		c = cached{token, value}
		s.cache[r.Key] = c
	}
	if !r.Write {
		return c.value, nil
	}
	if err := s.save(r.Key, token, r.Value); err != nil {
		return "", err
	}
	s.cache[r.Key] = cached{token, r.Value}
	return r.Value, nil
}

// load takes a register over: the store refuses all lower tokens from now on.
func (s *store) load(key int, token uint64) (value string, err error) {
	err = s.exchange(key, token, func(old string) string { value = old; return old })
	return value, err
}

func (s *store) save(key int, token uint64, value string) error {
	return s.exchange(key, token, func(string) string { return value })
}

// exchange changes the file of a register, under a lock of the file, unless the token is old.
func (s *store) exchange(key int, token uint64, change func(old string) string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, fmt.Sprint(key)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	var text [256]byte
	n, _ := f.ReadAt(text[:], 0)
	var highest uint64
	number, old, _ := strings.Cut(string(text[:n]), " ")
	if n > 0 {
		highest, err = strconv.ParseUint(number, 10, 64)
		if err != nil {
			return err
		}
	}
	if token < highest {
		return errNotDone
	}
	// One write of a short line: a killed process leaves the old line or the new one.
	_, err = f.WriteAt(fmt.Appendf(nil, "%020d %-200s", token, change(strings.TrimRight(old, " "))), 0)
	return err
}
