package kv

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
)

// Change is a key that has another value, or none.
type Change struct {
	Entry
	// Deleted says that the key is not there any more. Then Version is that of the value that
	// it had.
	Deleted bool
}

// Watch is what a watcher has seen of the keys that begin with Prefix, or of Key alone if that is
// not empty. The zero value has seen nothing.
type Watch struct {
	Prefix, Key string
	seen        map[string]uint64 // versions
}

// Changes yields what the watcher has not seen: at first all keys that are there, and then each
// that changes, in the order of their changes. A slow watcher gets only the last value of a key.
// It ends with ctx.
func (w *Watch) Changes(ctx context.Context, s *Store) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for {
			changed := s.changed.Wait()
			for _, c := range w.next(s) {
				if !yield(c) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Count returns how many keys the watcher watches now.
func (w *Watch) Count(s *Store) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.entries {
		if w.wants(key) {
			n++
		}
	}
	return n
}

// next returns what the watcher has not seen, and notes it.
func (w *Watch) next(s *Store) (changes []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.seen == nil {
		w.seen = make(map[string]uint64)
	}
	for key, version := range w.seen {
		if _, there := s.entries[key]; !there {
			changes = append(changes, Change{Entry{Key: key, Version: version}, true})
			delete(w.seen, key)
		}
	}
	for key, e := range s.entries {
		if w.wants(key) && w.seen[key] != e.Version {
			changes = append(changes, Change{Entry: e})
			w.seen[key] = e.Version
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Version, b.Version) })
	return changes
}

func (w *Watch) wants(key string) bool {
	return w.Key == key || w.Key == "" && strings.HasPrefix(key, w.Prefix)
}
