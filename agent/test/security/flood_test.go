package security

// A flood from one address: connections and requests by which nobody is let in. They must
// neither use up the memory of a member, nor keep others from joining.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

const (
	victimRole = "PLEACH_SECURITY_VICTIM"
	floodRole  = "PLEACH_SECURITY_FLOOD"
)

// victim is a process that is flooded: the first member of a group, or a candidate that
// waits for others.
type victim struct {
	Candidate string // its address; empty: a member
	Secret    []byte
	TLS       *testutil.Credentials
}

func init() {
	testutil.PlayRole(victimRole, victim.run)
	testutil.PlayRole(floodRole, flood.run)
}

func (v victim) run() {
	c := pleach.Config{Group: group, ID: "a", Listen: "127.0.0.1:0", Security: pleach.Security{Secret: v.Secret}}
	if v.TLS != nil {
		var err error
		c.Security.TLS, err = v.TLS.TLS()
		if err != nil {
			panic(err)
		}
	}
	fmt.Println("pid", os.Getpid())
	if v.Candidate != "" {
		c.Listen, c.Expect = v.Candidate, 3
		if _, err := pleach.Join(context.Background(), c); err != nil {
			panic(err)
		}
		select {}
	}
	g, err := pleach.Create(context.Background(), c)
	if err != nil {
		panic(err)
	}
	fmt.Println("address", g.Self().Address)
	select {}
}

// resident returns the resident memory of a process, in bytes.
func resident(t testing.TB, pid string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(string(bytes.Fields(b)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// flood is what one address does: a process of its own, with one processor.
type flood struct {
	Target        string
	TLS           *testutil.Credentials // of the attacker; nil: it has none
	Hellos, Joins int
	Rate          int // a second
	config        *tls.Config
}

// run floods with 64 connections at a time.
func (f flood) run() {
	runtime.GOMAXPROCS(1)
	if f.TLS != nil {
		f.config, _ = f.TLS.TLS()
		f.config.InsecureSkipVerify = true
	}
	fmt.Println("begins")
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: time.Second}
	var done atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range 64 {
		workers.Go(func() {
			for n := int(done.Add(1)); n <= f.Hellos+f.Joins; n = int(done.Add(1)) {
				time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(f.Rate))))
				if c, err := from.Dial("tcp", f.Target); err == nil {
					f.disturb(c, n > f.Hellos, n)
				}
			}
		})
	}
	workers.Wait()
	fmt.Println("ends")
}

// start begins the flood. The channel is closed when it is over.
func (f flood) start(t *testing.T) <-chan struct{} {
	t.Helper()
	p := testutil.StartRole(t, floodRole, f)
	p.Wait(t, "begins")
	over := make(chan struct{})
	go func() {
		defer close(over)
		testutil.Within(time.Hour, func() bool { return slices.Contains(p.All(), "ends") || t.Context().Err() != nil })
	}()
	return over
}

// disturb says Hello as a peer, or asks to join as a client that does not wait.
func (f *flood) disturb(raw net.Conn, join bool, n int) {
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(time.Second))
	c := raw
	if f.config != nil {
		secured := tls.Client(raw, f.config)
		if secured.Handshake() != nil {
			return
		}
		c = secured
	}
	h := wire.Hello{Group: group, From: protocol.Rank(n % 64), To: 0, Incarnation: uint64(n), Attempt: uint64(n)}
	if join {
		h = wire.Hello{Group: group, From: protocol.NoRank, To: protocol.NoRank}
	}
	if _, err := c.Write(wire.AppendFrame(nil, wire.AppendHello(nil, &h))); err != nil || !join {
		time.Sleep(500 * time.Microsecond)
		return
	}
	if _, err := wire.NewReader(c, wire.MaxHelloFrame).Next(); err == nil {
		_, _ = c.Write(wire.AppendFrame(nil, joinRequest(fmt.Sprint("evil", n), "127.0.0.2:1", uint64(n)|1)))
	}
}

// joinRequest is a request of kind 2.
func joinRequest(id, address string, nonce uint64) []byte {
	b := []byte{2}
	for _, text := range []string{id, address, "", string(make([]byte, 400))} {
		b = wire.AppendBytes(b, []byte(text))
	}
	return wire.AppendUint8(wire.AppendUint16(wire.AppendUint64(b, nonce), wire.Newest()), 0)
}

// settings are those of the table.
func settings(t testing.TB) (names []string, all map[string]victim, evil map[string]*testutil.Credentials,
	honest map[string]func(id string) pleach.Config,
) {
	t.Helper()
	ca := testutil.NewCA(t)
	secret := []byte("a secret that nobody knows")
	host := ca.Issue(t)
	u, _ := url.Parse("spiffe://example.org/pleach/other/evil")
	other := ca.IssueNames(t, &x509.Certificate{URIs: []*url.URL{u}})
	all = map[string]victim{"plain": {}, "secret": {Secret: secret}, "TLS": {TLS: &host}}
	evil = map[string]*testutil.Credentials{"TLS": &other}
	honest = map[string]func(id string) pleach.Config{
		"plain":  func(id string) pleach.Config { return pleach.Config{ID: id} },
		"secret": func(id string) pleach.Config { return pleach.Config{ID: id, Security: pleach.Security{Secret: secret}} },
		"TLS": func(id string) pleach.Config {
			return pleach.Config{ID: id, Security: pleach.Security{TLS: config(t, ca.Issue(t))}}
		},
	}
	return []string{"plain", "secret", "TLS"}, all, evil, honest
}

// joinTimes returns how long joins take, one after the other.
func joinTimes(t *testing.T, n int, seed string, c func(id string) pleach.Config) (times []time.Duration) {
	t.Helper()
	for i := range n {
		config := c(fmt.Sprint("honest", i))
		config.Group = group
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		began := time.Now()
		g, err := pleach.Join(ctx, config, seed)
		times = append(times, time.Since(began))
		if err != nil {
			t.Fatalf("honest join %d: %v", i, err)
		}
		_ = g.Leave(ctx)
		cancel()
	}
	slices.Sort(times)
	return times
}

// sizes returns how large a flood is.
func sizes() (hellos, joins, honest int) {
	if testutil.Full.On() {
		return 20_000, 3_000, 20
	}
	return 2_000, 600, 5
}

// skipWithRace skips a test of memory: the race detector takes several times that of the
// program.
func skipWithRace(t *testing.T) {
	t.Helper()
	if testutil.RaceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
}

func TestSecurityFloodOfMember(t *testing.T) {
	skipWithRace(t)
	names, victims, evil, honest := settings(t)
	hellos, joins, n := sizes()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			p := testutil.StartRole(t, victimRole, victims[name])
			pid, _ := p.Wait(t, "pid ")
			seed, _ := p.Wait(t, "address ")
			alone := joinTimes(t, n, seed, honest[name])
			before := resident(t, pid)
			most := watch(t, pid, flood{Target: seed, TLS: evil[name], Hellos: hellos, Joins: joins, Rate: 3000}.start(t))
			flooded := joinTimes(t, n, seed, honest[name])
			f := checkFlood(t, pid, before, <-most)
			p50, under := alone[n/2], flooded[n/2]
			f.Join, f.JoinFlooded = float64(p50.Microseconds())/1000, float64(under.Microseconds())/1000
			f.print(t, "member", name)
			limit := 2 * p50
			if !testutil.Full.On() {
				limit = 20*p50 + time.Second // the tests of other packages run beside this one
			}
			if under > limit {
				t.Errorf("a join takes %v under the flood, and %v without", under, p50)
			}
		})
	}
}

func TestSecurityFloodOfCandidate(t *testing.T) {
	skipWithRace(t)
	names, victims, evil, honest := settings(t)
	hellos, joins, _ := sizes()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v := victims[name]
			v.Candidate = testutil.FreeAddresses(t, 1)[0]
			p := testutil.StartRole(t, victimRole, v)
			pid, _ := p.Wait(t, "pid ")
			awaitListener(t, v.Candidate)
			// A process that has answered nobody yet has not loaded what it needs for that.
			<-flood{Target: v.Candidate, TLS: evil[name], Hellos: 20, Joins: 20, Rate: 3000}.start(t)
			before := resident(t, pid)
			most := watch(t, pid, flood{Target: v.Candidate, TLS: evil[name], Hellos: hellos, Joins: joins, Rate: 3000}.start(t))
			checkFlood(t, pid, before, <-most).print(t, "candidate", name)
			// It still begins a group with others.
			others := make(chan error, 2)
			for _, id := range []string{"b", "c"} {
				c := honest[name](id)
				c.Group, c.Expect, c.Listen = group, 3, "127.0.0.1:0"
				go func() {
					g, err := pleach.Join(t.Context(), c, v.Candidate)
					if err == nil {
						defer g.Abort()
					}
					others <- err
				}()
			}
			for range 2 {
				select {
				case err := <-others:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("no group begins")
				}
			}
		})
	}
}

// watch returns the most memory that a process has until something is over.
func watch(t *testing.T, pid string, over <-chan struct{}) <-chan int {
	most := make(chan int, 1)
	go func() {
		highest := 0
		for {
			highest = max(highest, resident(t, pid))
			select {
			case <-over:
				most <- highest
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return most
}

// figures are those of one flood: megabytes, seconds, and milliseconds of joins.
type figures struct {
	Victim      string  `json:"victim"`
	Setting     string  `json:"setting"`
	Hellos      int     `json:"hellos"`
	Joins       int     `json:"join_requests"`
	Before      float64 `json:"resident_before_mb"`
	Most        float64 `json:"resident_most_mb"`
	After       float64 `json:"resident_after_10s_mb"`
	Back        float64 `json:"descriptors_back_s"`
	Join        float64 `json:"join_p50_ms,omitempty"`
	JoinFlooded float64 `json:"join_flooded_p50_ms,omitempty"`
}

// print prints the figures as a line of JSON.
func (f figures) print(t *testing.T, victim, setting string) {
	t.Helper()
	f.Victim, f.Setting = victim, setting
	f.Hellos, f.Joins, _ = sizes()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n", b)
}

// maxDescriptors is how many files a process has open after a flood.
const maxDescriptors = 24

// checkFlood fails the test if a process has needed more than 10 MB for a flood, or keeps
// its descriptors.
func checkFlood(t *testing.T, pid string, before, most int) figures {
	t.Helper()
	began, open := time.Now(), 0
	testutil.Within(10*time.Second, func() bool {
		descriptors, err := os.ReadDir("/proc/" + pid + "/fd")
		open = len(descriptors)
		return err == nil && open <= maxDescriptors
	})
	f := figures{Before: mb(before), Most: mb(most), Back: math.Round(10*time.Since(began).Seconds()) / 10}
	if testutil.Full.On() {
		time.Sleep(time.Until(began.Add(10 * time.Second)))
	}
	f.After = mb(resident(t, pid))
	if most > before+10<<20 {
		t.Errorf("%.1f MB have become %.1f MB", f.Before, f.Most)
	}
	if open > maxDescriptors {
		t.Errorf("%d descriptors are open after the flood", open)
	}
	return f
}

// mb returns megabytes, to a tenth.
func mb(bytes int) float64 { return math.Round(float64(bytes)/(1<<20)*10) / 10 }

// awaitListener waits until a process listens at an address.
func awaitListener(t *testing.T, address string) {
	t.Helper()
	testutil.Eventually(t, "a process that listens at "+address, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}
