package kv

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Replica is what keys need of a [replicated.Replica].
type Replica interface {
	Propose(ctx context.Context, machine string, command []byte) ([]byte, error)
	Read(ctx context.Context, f func()) error
}

// ErrNotFound is returned for a key that is not there.
var ErrNotFound = errors.New("there is no such key")

// ConflictError is returned if a key does not have the version that the caller has named.
type ConflictError struct {
	Key     string
	Version uint64 // that it has; 0: it is not there
}

func (e *ConflictError) Error() string {
	if e.Version == Absent {
		return fmt.Sprintf("%q is not there", e.Key)
	}
	return fmt.Sprintf("%q has version %d", e.Key, e.Version)
}

// LimitError is returned for what is too much for a store.
type LimitError struct{ Reason string }

func (e *LimitError) Error() string { return e.Reason }

// Keys are the keys and values of a group, for one member. All calls are linearizable.
type Keys struct {
	Replica Replica
	Machine string // name of Store among the machines of Replica
	Store   *Store
}

// Get returns the entry of a key.
func (k *Keys) Get(ctx context.Context, key string) (e Entry, err error) {
	found := false
	if err := k.Replica.Read(ctx, func() { e, found = k.Store.get(key) }); err != nil {
		return e, err
	}
	if !found {
		return e, fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	return e, nil
}

// List returns the entries whose keys begin with a prefix, in order of their keys.
func (k *Keys) List(ctx context.Context, prefix string) (all []Entry, err error) {
	err = k.Replica.Read(ctx, func() { all = k.Store.list(prefix) })
	return all, err
}

// Put gives a key a value if it has the version, [Absent] or [Any]. It returns the new version.
func (k *Keys) Put(ctx context.Context, key string, value []byte, version uint64) (uint64, error) {
	switch {
	case len(key) == 0 || len(key) > MaxKey:
		return 0, &LimitError{fmt.Sprintf("a key has 1 to %d bytes, and this one %d", MaxKey, len(key))}
	case len(value) > MaxValue:
		return 0, &LimitError{fmt.Sprintf("a value has at most %d bytes, and this one %d", MaxValue, len(value))}
	}
	return k.propose(ctx, &command{op: opPut, key: key, match: version, value: value})
}

// Delete removes a key if it has the version, or [Any]. It returns the version of the change.
func (k *Keys) Delete(ctx context.Context, key string, version uint64) (uint64, error) {
	return k.propose(ctx, &command{op: opDelete, key: key, match: version})
}

func (k *Keys) propose(ctx context.Context, c *command) (uint64, error) {
	c.floor = Floor()
	result, err := k.Replica.Propose(ctx, k.Machine, c.encode())
	if err != nil {
		return 0, err
	}
	switch v, version := decodeResult(result); v {
	case verdictOK:
		return version, nil
	case verdictAbsent:
		return 0, fmt.Errorf("%w: %q", ErrNotFound, c.key)
	case verdictFull:
		return 0, &LimitError{fmt.Sprintf("the agents keep at most %d keys and %d bytes: delete some", MaxKeys, MaxBytes)}
	default:
		return 0, &ConflictError{c.key, version}
	}
}

// ReservedPrefix begins keys of the agents themselves, and ShardsPrefix those with the number of
// partitions of shards.
const (
	ReservedPrefix = "pleach/"
	ShardsPrefix   = ReservedPrefix + "shards/"
)

// Floor is what new versions and fencing tokens are not below: the time of day in milliseconds.
// So they keep rising when all agents have restarted and have forgotten the last ones.
func Floor() uint64 { return uint64(time.Now().UnixMilli()) }
