// Package kv is the keys and values that agents keep in memory: a state machine for package
// replicated, with versions for compare-and-set, and watches.
package kv

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/base/wire"
)

// Limits of a store.
const (
	MaxKey   = 255      // bytes of a key
	MaxValue = 64 << 10 // bytes of a value
	MaxKeys  = 16 << 10
	MaxBytes = 16 << 20 // of all keys and values
)

// Entry is a key with its value.
type Entry struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
	// Version is the number of the change that has made the value. All changes of the store are
	// numbered, and the numbers rise.
	Version uint64 `json:"version"`
}

// Store is the keys and values. Its methods may be called by several goroutines. Apply, Snapshot
// and Restore are for package replicated alone.
type Store struct {
	changed notify.Notifier

	mu      sync.Mutex // guards the rest
	entries map[string]Entry
	version uint64 // of the last change
	begun   uint64 // view in which the keys began empty, because no member had them; 0: they did not
	bytes   int    // of keys and values
}

// NewStore returns a store without keys.
func NewStore() *Store { return &Store{entries: make(map[string]Entry)} }

// operation is what a command does.
type operation uint8

const (
	opPut operation = iota + 1
	opDelete
)

// Any is the version that a command names which does not compare it. Absent is the version of a
// key that is not there.
const (
	Any    = ^uint64(0)
	Absent = 0
)

// command is a command of a store.
type command struct {
	op    operation
	key   string
	match uint64 // the version that the key must have
	floor uint64 // what the version of the change is not below
	value []byte
}

func (c *command) encode() []byte {
	b := wire.AppendBytes([]byte{byte(c.op)}, []byte(c.key))
	return append(wire.AppendUint64(wire.AppendUint64(b, c.match), c.floor), c.value...)
}

func decodeCommand(b []byte) (c command, err error) {
	d := wire.NewDecoder(b)
	c.op, c.key, c.match, c.floor = operation(d.Uint8()), string(d.Bytes()), d.Uint64(), d.Uint64()
	c.value = slices.Clone(d.Rest())
	return c, d.Finish()
}

// verdict is the first byte of a result. Behind it is the version of the change, or that of the
// key if there is none.
type verdict byte

const (
	verdictOK verdict = iota + 1
	verdictConflict
	verdictAbsent
	verdictFull
)

func decodeResult(b []byte) (verdict, uint64) {
	d := wire.NewDecoder(b)
	return verdict(d.Uint8()), d.Uint64()
}

// Apply applies a command. It implements [replicated.Machine].
func (s *Store) Apply(b []byte) []byte {
	c, err := decodeCommand(b)
	if err != nil {
		return wire.AppendUint64([]byte{byte(verdictConflict)}, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, version := s.apply(&c)
	if v == verdictOK {
		s.changed.Notify()
	}
	return wire.AppendUint64([]byte{byte(v)}, version)
}

func (s *Store) apply(c *command) (verdict, uint64) {
	old, there := s.entries[c.key]
	size := s.bytes - len(old.Key) - len(old.Value)
	switch {
	case c.op == opDelete && !there:
		return verdictAbsent, Absent
	case c.match != Any && c.match != old.Version:
		return verdictConflict, old.Version
	case c.op == opDelete:
		delete(s.entries, c.key)
	case size+len(c.key)+len(c.value) > MaxBytes || !there && len(s.entries) >= MaxKeys:
		return verdictFull, old.Version
	}
	s.version = max(s.version+1, c.floor)
	s.bytes = size
	if c.op == opPut {
		s.bytes += len(c.key) + len(c.value)
		s.entries[c.key] = Entry{c.key, c.value, s.version}
	}
	return verdictOK, s.version
}

// get returns the entry of a key.
func (s *Store) get(key string) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	return e, ok
}

// list returns the entries whose keys begin with a prefix, in order of their keys.
func (s *Store) list(prefix string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Entry{}
	for _, key := range slices.Sorted(maps.Keys(s.entries)) {
		if strings.HasPrefix(key, prefix) {
			all = append(all, s.entries[key])
		}
	}
	return all
}

// Size returns how many keys there are, and their bytes with those of the values.
func (s *Store) Size() (keys, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.bytes
}

// snapshot is the state of a store.
type snapshot struct {
	Version uint64  `json:"version"`
	Begun   uint64  `json:"begun,omitempty"`
	Entries []Entry `json:"entries"`
}

// Snapshot writes the state. It implements [replicated.Machine].
func (s *Store) Snapshot(w io.Writer) error {
	entries := s.list("")
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.NewEncoder(w).Encode(snapshot{s.version, s.begun, entries})
}

// Begun notes the view in which the keys began empty, because no member of the group had them. It is
// called between two commands, with the same view at all members.
func (s *Store) Begun(view uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = view
}

// BegunIn returns the view in which the keys began empty; 0: they did not.
func (s *Store) BegunIn() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Restore replaces the state. It implements [replicated.Machine].
func (s *Store) Restore(r io.Reader) error {
	var from snapshot
	if err := json.NewDecoder(r).Decode(&from); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = from.Begun
	s.entries, s.version, s.bytes = make(map[string]Entry, len(from.Entries)), from.Version, 0
	for _, e := range from.Entries {
		s.entries[e.Key] = e
		s.bytes += len(e.Key) + len(e.Value)
	}
	s.changed.Notify()
	return nil
}
