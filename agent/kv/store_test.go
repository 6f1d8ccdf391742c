package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// direct is a replica that applies commands to one store.
type direct struct{ store *Store }

func (d direct) Propose(_ context.Context, _ string, command []byte) ([]byte, error) {
	return d.store.Apply(command), nil
}

func (d direct) Read(_ context.Context, f func()) error {
	f()
	return nil
}

func newKeys() *Keys {
	s := NewStore()
	return &Keys{Replica: direct{s}, Store: s}
}

// A store is a map with versions that rise, and a copy of it by a snapshot is the same.
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, model := newKeys(), make(map[string]Entry)
		var last uint64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a", "b", "b/c"}).Draw(t, "key")
			value := []byte(rapid.StringN(0, 3, -1).Draw(t, "value"))
			old, there := model[key]
			match := rapid.SampledFrom([]uint64{Any, Absent, old.Version, 1}).Draw(t, "match")
			deletes := rapid.Bool().Draw(t, "deletes")
			change := func() (uint64, error) { return k.Put(t.Context(), key, value, match) }
			if deletes {
				change = func() (uint64, error) { return k.Delete(t.Context(), key, match) }
			}
			version, err := change()
			var conflict *ConflictError
			switch {
			case deletes && !there:
				if !errors.Is(err, ErrNotFound) {
					t.Fatalf("got %v", err)
				}
			case match != Any && match != old.Version:
				if !errors.As(err, &conflict) || conflict.Version != old.Version {
					t.Fatalf("got %v, want version %d", err, old.Version)
				}
			case err != nil || version <= last:
				t.Fatalf("version %d after %d: %v", version, last, err)
			default:
				last, model[key] = version, Entry{key, value, version}
				if deletes {
					delete(model, key)
				}
			}
		}
		var b bytes.Buffer
		if err := k.Store.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		restored := NewStore()
		if err := restored.Restore(&b); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Store{k.Store, restored} {
			size := 0
			for _, e := range s.list("") {
				if want := model[e.Key]; e.Version != want.Version || !bytes.Equal(e.Value, want.Value) {
					t.Fatalf("got %+v, want %+v", e, want)
				}
				size += len(e.Key) + len(e.Value)
			}
			if keys, bytes := s.Size(); keys != len(model) || bytes != size || s.version != k.Store.version {
				t.Fatalf("%d keys of %d bytes, want %d of %d", keys, bytes, len(model), size)
			}
		}
	})
}

func TestLimits(t *testing.T) {
	k := newKeys()
	var limit *LimitError
	put := func(key string, size int) error {
		_, err := k.Put(t.Context(), key, make([]byte, size), Any)
		return err
	}
	for key, size := range map[string]int{"": 0, strings.Repeat("k", MaxKey+1): 0, "k": MaxValue + 1} {
		if err := put(key, size); !errors.As(err, &limit) {
			t.Errorf("%d bytes of key, %d of value: %v", len(key), size, err)
		}
	}
	for i := range MaxBytes/MaxValue - 1 {
		if err := put(fmt.Sprint(i), MaxValue); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("more", MaxValue); !errors.As(err, &limit) {
		t.Errorf("too many bytes: %v", err)
	}
	if err := put("0", MaxValue); err != nil {
		t.Errorf("no room for the value that is there: %v", err)
	}
	k = newKeys()
	for i := range MaxKeys {
		if err := put(fmt.Sprint(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("more", 0); !errors.As(err, &limit) {
		t.Errorf("too many keys: %v", err)
	}
}

// A watcher gets what is there, then what changes, and of a key that changes often the last value.
func TestWatchGetsTheLastValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, ctx := newKeys(), t.Context()
		put := func(key, value string) {
			if _, err := k.Put(ctx, key, []byte(value), Any); err != nil {
				t.Error(err)
			}
		}
		put("a/1", "x")
		put("b", "x")
		watching, end := context.WithCancel(ctx)
		var got []string
		w := Watch{Prefix: "a/"}
		slow := make(chan struct{})
		go func() {
			for c := range w.Changes(watching, k.Store) {
				got = append(got, fmt.Sprint(c.Key, "=", string(c.Value), c.Deleted))
				<-slow
			}
		}()
		synctest.Wait()
		for _, v := range []string{"1", "2", "3"} {
			put("a/2", v)
		}
		put("a/3", "y")
		if _, err := k.Delete(ctx, "a/1", Any); err != nil {
			t.Error(err)
		}
		close(slow)
		synctest.Wait()
		end()
		synctest.Wait()
		if want := []string{"a/1=xfalse", "a/1=true", "a/2=3false", "a/3=yfalse"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Bytes from another member do not crash a store.
func FuzzStore(f *testing.F) {
	c := command{op: opPut, key: "k", match: Any, value: []byte("v")}
	f.Add(c.encode())
	f.Add([]byte(`{"version":1,"entries":[{"key":"k","value":"dg==","version":1}]}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		s := NewStore()
		s.Apply(b)
		_ = s.Restore(bytes.NewReader(b))
	})
}
