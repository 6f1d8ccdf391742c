//go:build unix

package pleachgroupcache_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgun/groupcache/v2"

	"github.com/pleach-go/pleach"
	pleachgroupcache "github.com/pleach-go/pleach/contrib/groupcache"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes of this test are instances of a service: groupcache has one pool of peers in a process.
const roleVariable = "GROUPCACHE_TEST_ROLE"

func init() { testutil.PlayRole(roleVariable, play) }

// role is an instance.
type role struct {
	Self     int
	Members  []string // addresses in the group
	Servers  []string // addresses of HTTP servers
	Database string
}

// play runs an instance with two caches: one is invalidated by this package, the other one by
// groupcache's Remove.
func play(r role) {
	mux := http.NewServeMux()
	pool := groupcache.NewHTTPPoolOpts("http://"+r.Servers[r.Self], nil)
	var peers []string
	for _, address := range r.Servers {
		peers = append(peers, "http://"+address)
	}
	pool.Set(peers...)
	mux.Handle("/_groupcache/", pool)
	load := groupcache.GetterFunc(func(ctx context.Context, key string, dest groupcache.Sink) error {
		value, err := get(ctx, http.MethodGet, "http://"+r.Database, key)
		if err != nil {
			return err
		}
		return dest.SetString(value, time.Time{})
	})
	invalidations := pleachgroupcache.New()
	cache := invalidations.NewCache("ours", 1<<20, load)
	plain := groupcache.NewGroup("plain", 1<<20, load)

	current := make(chan struct{}, 1)
	group, err := pleach.Join(context.Background(), pleach.Config{
		Group: "cache", Listen: r.Members[r.Self], Expect: len(r.Members), State: invalidations,
		OnMessage: invalidations.Receive, OnCurrent: func() {
			select {
			case current <- struct{}{}:
			default:
			}
		},
	}, r.Members...)
	if err != nil {
		panic(err)
	}
	<-current
	handle := func(path string, f func(ctx context.Context, key string) (string, error)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			text, err := f(r.Context(), r.FormValue("key"))
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				text = err.Error()
			}
			_, _ = io.WriteString(w, text)
		})
	}
	handle("/ours", func(ctx context.Context, key string) (value string, err error) {
		err = cache.Get(ctx, key, groupcache.StringSink(&value))
		return value, err
	})
	handle("/plain", func(ctx context.Context, key string) (value string, err error) {
		err = plain.Get(ctx, key, groupcache.StringSink(&value))
		return value, err
	})
	handle("/ours/changed", func(ctx context.Context, key string) (string, error) {
		receipt, err := cache.Invalidate(ctx, group, key)
		return fmt.Sprint(len(receipt.Members)), err
	})
	handle("/plain/changed", func(ctx context.Context, key string) (string, error) {
		return "", plain.Remove(ctx, key)
	})
	panic(http.ListenAndServe(r.Servers[r.Self], mux))
}

// get sends a request about a key.
func get(ctx context.Context, method, url, key string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url+"?key="+key, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}

// database has a version of each key. A reader gets its value a while after it was read.
type database struct {
	mu       sync.Mutex
	versions map[string]int
	reads    int
}

func (d *database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	version := d.versions[r.FormValue("key")]
	d.reads++
	d.mu.Unlock()
	select {
	case <-time.After(rand.N(10 * time.Millisecond)):
		_, _ = io.WriteString(w, strconv.Itoa(version))
	case <-r.Context().Done():
	}
}

func (d *database) change(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.versions[key]++
	return d.versions[key]
}

// service is instances in processes of their own, and their database.
type service struct {
	t         *testing.T
	role      role
	processes []*testutil.Process
	database  *database
}

const instances = 3

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, database: &database{versions: make(map[string]int)}}
	s.processes = make([]*testutil.Process, instances)
	server := httptest.NewServer(s.database)
	t.Cleanup(server.Close)
	s.role = role{
		Members: testutil.FreeAddresses(t, instances), Servers: testutil.FreeAddresses(t, instances),
		Database: strings.TrimPrefix(server.URL, "http://"),
	}
	for i := range instances {
		s.start(i)
	}
	for i := range instances {
		s.awaitReady(i)
	}
	return s
}

func (s *service) start(i int) {
	s.t.Helper()
	r := s.role
	r.Self = i
	s.processes[i] = testutil.StartRole(s.t, roleVariable, r)
}

func (s *service) awaitReady(i int) {
	s.t.Helper()
	testutil.Eventually(s.t, "an instance serves", func() bool {
		_, err := s.call(i, "/ours", "ready")
		return err == nil
	})
}

func (s *service) call(i int, path, key string) (string, error) {
	return get(s.t.Context(), http.MethodPost, "http://"+s.role.Servers[i]+path, key)
}

// read reads from several goroutines for each instance until ctx ends.
func (s *service) read(ctx context.Context, path string, keys int) *sync.WaitGroup {
	readers := new(sync.WaitGroup)
	for i := range instances {
		for range 4 {
			readers.Go(func() {
				for ctx.Err() == nil {
					_, _ = get(ctx, http.MethodGet, "http://"+s.role.Servers[i]+path, strconv.Itoa(rand.IntN(keys)))
				}
			})
		}
	}
	return readers
}

// stale changes keys twice while others read them, and counts the instances that have an old value after
// the change was made known to all.
func (s *service) stale(path string, rounds int) (stale int) {
	s.t.Helper()
	const keys = 4
	ctx, cancel := context.WithCancel(s.t.Context())
	readers := s.read(ctx, path, keys)
	change := func(key string) (version int) {
		version = s.database.change(key)
		if _, err := s.call(rand.IntN(instances), path+"/changed", key); err != nil {
			s.t.Error(err)
		}
		return version
	}
	for range rounds {
		key := strconv.Itoa(rand.IntN(keys))
		change(key)
		time.Sleep(rand.N(5 * time.Millisecond)) // instances load it
		version := change(key)
		for i := range instances {
			value, err := s.call(i, path, key)
			if got, _ := strconv.Atoi(value); err != nil || got < version {
				stale++
			}
		}
	}
	cancel()
	readers.Wait()
	return stale
}

// A key that is changed at one instance is stale nowhere after its receipt, while all instances load
// and serve it. groupcache's own Remove does not promise that.
func TestStaleNowhereAfterReceipt(t *testing.T) {
	s := newService(t)
	rounds := 100
	if testutil.Full.On() {
		rounds = 2000
	}
	plain := s.stale("/plain", rounds)
	t.Logf("groupcache's Remove: %d of %d reads after it are stale", plain, rounds*instances)
	if ours := s.stale("/ours", rounds); ours > 0 {
		t.Errorf("%d of %d reads after a receipt are stale", ours, rounds*instances)
	}
}

// Values are shared: an instance gets from another one what that has loaded.
func TestValuesAreShared(t *testing.T) {
	s := newService(t)
	const keys = 50
	s.database.mu.Lock()
	s.database.reads = 0
	s.database.mu.Unlock()
	for range 2 {
		for i := range instances {
			for k := range keys {
				if _, err := s.call(i, "/ours", fmt.Sprint("shared", k)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s.database.mu.Lock()
	defer s.database.mu.Unlock()
	if s.database.reads != keys {
		t.Errorf("%d reads of %d keys", s.database.reads, keys)
	}
}

// An instance that dies does not hold up receipts, and has no old values when it is back.
func TestKilledInstance(t *testing.T) {
	s := newService(t)
	version := s.database.change("a")
	for i := range instances {
		if value, err := s.call(i, "/ours", "a"); err != nil || value != strconv.Itoa(version) {
			t.Errorf("%q, %v", value, err)
		}
	}
	s.processes[2].Kill()
	version = s.database.change("a")
	if members, err := s.call(0, "/ours/changed", "a"); err != nil || members != "2" {
		t.Errorf("a receipt of %s members, %v", members, err)
	}
	s.start(2)
	s.awaitReady(2)
	for i := range instances {
		if value, err := s.call(i, "/ours", "a"); err != nil || value != strconv.Itoa(version) {
			t.Errorf("%q, %v", value, err)
		}
	}
	if members, err := s.call(2, "/ours/changed", "a"); err != nil || members != "3" {
		t.Errorf("a receipt of %s members, %v", members, err)
	}
}

// A process that may have missed invalidations does not use values that it, or another one, has
// cached before.
func TestMissedInvalidations(t *testing.T) {
	snapshot := func(i *pleachgroupcache.Invalidations) []byte {
		var b bytes.Buffer
		if err := i.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	a, b := pleachgroupcache.New(), pleachgroupcache.New()
	if bytes.Equal(snapshot(a), snapshot(b)) {
		t.Error("two processes that have no state share values")
	}
	if err := b.Restore(bytes.NewReader(snapshot(a))); err != nil {
		t.Fatal(err)
	}
	first := pleach.Message{Topic: pleachgroupcache.Topic, Data: []byte("12345678\x00\x01\x3f\xff\xff\xff")}
	second := pleach.Message{Topic: pleachgroupcache.Topic, Data: []byte("abcdefgh\x00\x01")}
	a.Receive(first, nil)
	if bytes.Equal(snapshot(a), snapshot(b)) {
		t.Error("an invalidation has no effect")
	}
	a.Receive(second, nil)
	b.Receive(second, nil)
	b.Receive(first, nil)
	for _, topic := range []string{"", "x"} {
		b.Receive(pleach.Message{Topic: topic, Data: first.Data}, nil)
	}
	for _, short := range []string{"", "1234567", "12345678", "12345678\x00"} {
		b.Receive(pleach.Message{Topic: pleachgroupcache.Topic, Data: []byte(short)}, nil)
	}
	if !bytes.Equal(snapshot(a), snapshot(b)) {
		t.Error("the order of invalidations makes a difference")
	}
	b.Receive(pleach.Message{}, &pleach.LostError{})
	if bytes.Equal(snapshot(a), snapshot(b)) {
		t.Error("a process that has lost messages shares values")
	}
	if err := b.Restore(strings.NewReader("short")); err == nil {
		t.Error("a snapshot that is cut off was restored")
	}
}
