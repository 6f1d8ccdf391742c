package api

import (
	"bufio"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/kv"
	"github.com/pleach-go/pleach/lease"
)

func filled[T any](f *fakeAgent) (*T, error) {
	v := new(T)
	fill(reflect.ValueOf(v).Elem())
	return v, f.err
}

func (f *fakeAgent) Get(context.Context, string) (*Entry, error) {
	return &Entry{"k", 1, NewPayload([]byte{0xff})}, f.err
}

func (f *fakeAgent) List(context.Context, string) (*Entries, error) {
	return &Entries{[]Entry{{"k", 1, NewPayload([]byte("v"))}}}, f.err
}

func (f *fakeAgent) Put(context.Context, string, []byte, uint64) (*Changed, error) {
	return filled[Changed](f)
}

func (f *fakeAgent) Delete(context.Context, string, uint64) (*Changed, error) {
	return filled[Changed](f)
}

func (f *fakeAgent) Watch(context.Context, kv.Watch) (func(context.Context) iter.Seq[Change], error) {
	return func(ctx context.Context) iter.Seq[Change] {
		return func(yield func(Change) bool) {
			_ = yield(Change{Entry: Entry{"k", 1, NewPayload([]byte("v"))}}) &&
				yield(Change{Entry: Entry{Key: "k", Version: 1}, Deleted: true})
			<-ctx.Done()
		}
	}, f.err
}

func (f *fakeAgent) Locks(context.Context) (*LockList, error) { return filled[LockList](f) }

func (f *fakeAgent) Lock(context.Context, string, string, time.Duration, bool) (*Lock, error) {
	return filled[Lock](f)
}

func (f *fakeAgent) Renew(context.Context, string, Handle) error  { return f.err }
func (f *fakeAgent) Unlock(context.Context, string, Handle) error { return f.err }

func (f *fakeAgent) Rollouts(context.Context) (*RolloutList, error) { return filled[RolloutList](f) }

func (f *fakeAgent) Rollout(context.Context, string) (*Rollout, error) { return filled[Rollout](f) }

func (f *fakeAgent) StartRollout(context.Context, *RolloutSpec) (*Rollout, error) {
	return filled[Rollout](f)
}

func (f *fakeAgent) ChangeRollout(context.Context, string, RolloutChange) (*Rollout, error) {
	return filled[Rollout](f)
}

func (f *fakeAgent) PutShards(context.Context, string, int) (*Changed, error) {
	return filled[Changed](f)
}

func (f *fakeAgent) DeleteShards(context.Context, string) (*Changed, error) {
	return filled[Changed](f)
}

func (f *fakeAgent) ShardOf(context.Context, string, string) (*Shard, error) {
	return &Shard{Name: "s", Partition: 1, Mine: true, Owner: &some, Token: 7}, f.err
}

func (f *fakeAgent) Owners(context.Context, string) (*Owners, error) { return filled[Owners](f) }

// Both replies about shards are as they are described.
func TestShardsAreAsDescribed(t *testing.T) {
	s, d := newTestServer(newFake()), readDescription(t)
	for target, name := range map[string]string{"/v1/shards/s": "Owners", "/v1/shards/s?key=k": "Shard"} {
		for _, c := range d.check(&schema{Ref: "/" + name}, name, decoded(t, request(s, "GET", target, "").Body.Bytes())) {
			t.Error(c)
		}
	}
}

// assigning is an agent whose shards get an owner with each look at them.
type assigning struct {
	*fakeAgent
	looks int
}

func (a *assigning) Owners(context.Context, string) (*Owners, error) {
	a.looks++
	if a.looks == 1 {
		return nil, ErrNoShards
	}
	return &Owners{Name: "s", Owners: make([]PartitionOwner, a.looks-2)}, a.err
}

// PUT replies at once, or when each partition has an owner.
func TestNewShardsAreAwaited(t *testing.T) {
	for target, want := range map[string]int{"/v1/shards/s?partitions=2": 0, "/v1/shards/s?partitions=2&wait=true": 4} {
		a := &assigning{fakeAgent: newFake()}
		w := request(NewServer(a, slog.New(slog.DiscardHandler)), "PUT", target, "")
		if w.Code != http.StatusOK || a.looks != want {
			t.Errorf("%s: %d after %d looks, want %d: %s", target, w.Code, a.looks, want, w.Body)
		}
	}
	// they never get all owners
	w := request(newTestServer(newFake()), "PUT", "/v1/shards/s?partitions=4000&wait=true&timeout=50ms", "")
	if w.Code != http.StatusGatewayTimeout {
		t.Errorf("without owners: %d: %s", w.Code, w.Body)
	}
}

// A watch is a stream of events as they are described.
func TestWatchIsAStream(t *testing.T) {
	server := httptest.NewServer(newTestServer(newFake()).handler())
	defer server.Close()
	response, err := http.Get(server.URL + "/v1/watch?prefix=k")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	d := readDescription(t)
	lines := bufio.NewScanner(response.Body)
	for _, want := range []string{
		"event: put", `data: {"key":"k","version":1,"data":"v"}`, "",
		"event: delete", `data: {"key":"k","version":1,"data":"","deleted":true}`, "",
	} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, want %q", lines.Text(), want)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			for _, c := range d.check(&schema{Ref: "/KeyChange"}, "", decoded(t, []byte(data))) {
				t.Error(c)
			}
		}
	}
}

func TestStatusOfKeysAndLocks(t *testing.T) {
	f := newFake()
	s := newTestServer(f)
	for _, c := range []struct {
		err            error
		method, target string
		want           int
		body           string // what the reply has
	}{
		{nil, "PUT", "/v1/kv/a/b?version=x", 400, "write the version"},
		{nil, "PUT", "/v1/kv/a?timeout=x", 400, ""},
		{&kv.ConflictError{Key: "a", Version: 7}, "PUT", "/v1/kv/a?version=6", 409, `"version":7`},
		{&kv.LimitError{Reason: "too long"}, "PUT", "/v1/kv/a", 413, "too long"},
		{kv.ErrNotFound, "GET", "/v1/kv/a", 404, ""},
		{nil, "POST", "/v1/locks/a?ttl=1ms", 400, "write a time"},
		{nil, "POST", "/v1/locks/" + strings.Repeat("a", 256), 400, ""},
		{lease.ErrHeld, "POST", "/v1/locks/a/b", 409, "held"},
		{lease.ErrEarly, "POST", "/v1/locks/a", 425, "holder from before"},
		{nil, "PUT", "/v1/locks/a", 400, "?handle="},
		{&HandleError{"a"}, "DELETE", "/v1/locks/a?handle=1-x", 403, "only its holder"},
		{&ShardsFullError{64, 64}, "PUT", "/v1/shards/a?partitions=1", 413, "at most 64"},
		{lease.ErrExpired, "PUT", "/v1/locks/a?token=1", 409, "expired"},
		{lease.ErrFull, "POST", "/v1/locks/a", 413, ""},
		{ErrNotMember, "GET", "/v1/watch", 503, ""},
		{nil, "PUT", "/v1/kv/pleach/x", 400, "those of the agents"},
		{nil, "PUT", "/v1/shards/a?partitions=0", 400, "partitions"},
		{ErrNoShards, "GET", "/v1/shards/a", 404, "PUT /v1/shards"},
	} {
		f.err = c.err
		w := request(s, c.method, c.target, "")
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s: %v: got %d: %s", c.method, c.target, c.err, w.Code, w.Body)
		}
	}
}
