package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// meetAll has processes meet, and returns what each has got, by its place in the list.
func meetAll(ctx context.Context, processes ...Assignment) ([]Assignment, []error) {
	got, errs := make([]Assignment, len(processes)), make([]error, len(processes))
	var all sync.WaitGroup
	for i, a := range processes {
		all.Go(func() {
			time.Sleep(time.Duration(len(processes)-i) * 10 * time.Millisecond) // rank 0 comes last
			got[i], errs[i] = a.Meet(ctx)
			if errs[i] == nil {
				l, _ := got[i].Listener()
				defer l.Close()
			}
		})
	}
	all.Wait()
	return got, errs
}

// processes are those of a job that meets.
func processes(at string, size int, secret string) (list []Assignment) {
	for rank := range size {
		list = append(list, Assignment{
			Rank: protocol.Rank(rank), Size: protocol.Rank(size), Group: "job", Rendezvous: at,
			Secret: []byte(secret),
		})
	}
	return list
}

func TestProcessesMeet(t *testing.T) {
	for _, secret := range []string{"", "sixteen and more bytes"} {
		got, errs := meetAll(t.Context(), processes(testutil.FreeAddresses(t, 1)[0], 9, secret)...)
		for rank, a := range got {
			if errs[rank] != nil {
				t.Fatal(errs[rank])
			}
			l, err := a.Listener()
			if err != nil || l.Addr().String() != a.Addresses[rank] || !slices.Equal(a.Addresses, got[0].Addresses) {
				t.Errorf("rank %d listens at %v (%v) and has %v", rank, l.Addr(), err, a.Addresses)
			}
		}
	}
}

// An outsider neither gets the list nor a place in it.
func TestOutsidersDoNotMeet(t *testing.T) {
	job := processes(testutil.FreeAddresses(t, 1)[0], 3, "sixteen and more bytes")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	for rank, secret := range []string{"", "another of sixteen bytes", "a third one of sixteen bytes"} {
		outsider := job[rank]
		outsider.Secret, outsider.Rank = []byte(secret), 1
		all.Go(func() {
			if a, err := outsider.Meet(ctx); err == nil {
				t.Errorf("an outsider has got %v", a.Addresses)
			}
		})
	}
	if _, errs := meetAll(t.Context(), job...); slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		t.Error(errs)
	}
	all.Wait()
}

// Those that wait learn who is missing, and who does not belong there. Of two of a rank, the one that comes
// later does.
func TestMeetingsThatFail(t *testing.T) {
	at := testutil.FreeAddresses(t, 1)[0]
	job := processes(at, 4, "")
	other, large, twice := job[2], job[2], job[1]
	other.Group, large.Size = "other", 5
	for _, c := range []struct {
		who   []Assignment
		oneOf []int
		want  string
	}{
		{[]Assignment{job[0], job[1], job[3]}, []int{1}, "ranks [2] of 4 have not come"},
		{[]Assignment{job[0], job[1], job[3]}, []int{0}, "ranks [2] of 4 have not come"},
		{[]Assignment{job[0], job[1], other}, []int{2}, `is of the job "other"`},
		{[]Assignment{job[0], job[1], large}, []int{2}, "of a job of 5 processes"},
		{[]Assignment{job[0], twice, job[1]}, []int{1, 2}, "rank 1 is here twice"},
		{[]Assignment{job[1]}, []int{0}, "refused"},
		{[]Assignment{job[0], job[0]}, []int{0, 1}, "rank 0 is the rendezvous"}, // the other one has the address
	} {
		var errs []error
		told := func(i int) bool { return errs[i] != nil && strings.Contains(errs[i].Error(), c.want) }
		for timeout := 500 * time.Millisecond; timeout < time.Minute; timeout *= 2 { // a busy host needs more
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			_, errs = meetAll(ctx, c.who...)
			cancel()
			if slices.ContainsFunc(c.oneOf, told) {
				break
			}
		}
		if !slices.ContainsFunc(c.oneOf, told) {
			t.Errorf("got %v, want %q at one of %v", errs, c.want, c.oneOf)
		}
	}
}

func TestDetectRendezvous(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"PLEACH_RANK": "1", "PLEACH_SIZE": "2", "PLEACH_RENDEZVOUS": "a:9"}, "a:9"},
		{map[string]string{"PLEACH_RANK": "1", "PLEACH_RENDEZVOUS": "a:9", "PLEACH_ADDRESSES": "a:1,b:1"}, ""},
		{map[string]string{
			"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
			"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PLEACH_RENDEZVOUS": "a:9",
		}, "a:9"},
		{map[string]string{
			"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "a",
			"MASTER_PORT": "29500",
		}, "a:27600"},
		{map[string]string{
			"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a",
			"MASTER_PORT": "29500",
		}, ""},
	} {
		a, err := Detect(func(name string) string { return c.env[name] })
		if err != nil || a.Rendezvous != c.want || (a.Addresses == nil) != (c.want != "") {
			t.Errorf("%v: %+v, %v", c.env, a, err)
		}
	}
	if _, err := Detect(func(name string) string {
		return map[string]string{"PLEACH_RANK": "1", "PLEACH_SIZE": "2", "PLEACH_RENDEZVOUS": "a"}[name]
	}); err == nil || !strings.Contains(err.Error(), "PLEACH_RENDEZVOUS") {
		t.Errorf("an address without a port: %v", err)
	}
}

// speak connects from a loopback address, answers the challenge, and returns what comes then.
func speak(t *testing.T, from, at string, answer func(challenge string) registration) string {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	var c net.Conn
	for c == nil {
		c, _ = d.DialContext(t.Context(), "tcp", at) // rank 0 may start later
		if t.Context().Err() != nil {
			return ""
		}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(c)
	line, err := in.ReadBytes('\n')
	var asked challenge
	if err == nil {
		err = json.Unmarshal(line, &asked)
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	r := answer(asked.Challenge)
	if err := json.NewEncoder(c).Encode(&r); err != nil {
		t.Error(err)
	}
	rest, _ := in.ReadString('\n')
	return rest
}

// What a process has said to rank 0 counts neither again nor from elsewhere: case 98.
func TestRegistrationsCannotBeReplayed(t *testing.T) {
	secret := []byte("sixteen and more bytes")
	at := testutil.FreeAddresses(t, 1)[0]
	job := processes(at, 3, string(secret))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	meeting := make(chan error, 1)
	go func() {
		_, err := job[0].Meet(ctx)
		meeting <- err
	}()
	read := make(chan registration, 1)
	go speak(t, "127.0.0.1", at, func(challenge string) registration { // rank 1, with a reader on the way
		r := registration{Group: "job", Size: 3, Rank: 1, Host: "127.0.0.1", Port: 4242, Nonce: "x"}
		r.MAC = r.sign(secret, challenge)
		read <- r
		return r
	})
	line := <-read
	for _, from := range []string{"127.0.0.1", "127.0.0.66"} {
		if got := speak(t, from, at, func(string) registration { return line }); got != "" {
			t.Errorf("a registration said again from %s: %q", from, got)
		}
	}
	// A process on the way passes rank 0's challenge to rank 2, and its registration to rank 0.
	got := speak(t, "127.0.0.66", at, func(challenge string) registration {
		r := registration{Group: "job", Size: 3, Rank: 2, Host: "127.0.0.1", Port: 4243, Nonce: "y"}
		r.MAC = r.sign(secret, challenge)
		return r
	})
	if !strings.Contains(got, "sees it at 127.0.0.66") {
		t.Errorf("a registration that was passed on: %q", got)
	}
	cancel()
	if err := <-meeting; err == nil {
		t.Error("the job has begun without ranks 1 and 2")
	}
}

// Strangers who hold as many connections as they can, and say nothing, do not delay a start:
// processes register while all places are taken. Case 98.
func TestSilentConnectionsDoNotDelayAMeeting(t *testing.T) {
	before := registerTime
	registerTime = time.Hour
	defer func() { registerTime = before }()
	at := testutil.FreeAddresses(t, 1)[0]
	job := processes(at, 3, "sixteen and more bytes")
	ctx := t.Context()
	rank0 := make(chan error, 1)
	go func() {
		_, err := job[0].Meet(ctx)
		rank0 <- err
	}()
	var dialer net.Dialer
	for open := 0; open < 3*spareConnections; {
		if c, err := dialer.DialContext(ctx, "tcp", at); err == nil {
			defer c.Close()
			open++
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	_, errs := meetAll(ctx, job[1:]...)
	if err := errors.Join(append(errs, <-rank0)...); err != nil {
		t.Error(err)
	}
}

// The oldest connection of the host with the most is closed.
func TestSilentConnectionsAreFair(t *testing.T) {
	s := silent{limit: 4}
	conns := map[string]*silentConn{}
	for _, name := range []string{"a1", "b1", "b2", "a2", "b3", "c1", "b4"} {
		conns[name] = &silentConn{host: name[0]}
		s.add(conns[name])
	}
	var closed []string
	for name, c := range conns {
		if c.closed {
			closed = append(closed, name)
		}
	}
	slices.Sort(closed)
	if want := []string{"a1", "b1", "b2"}; !slices.Equal(closed, want) {
		t.Errorf("closed %v, want %v", closed, want)
	}
}

// silentConn is a connection from a host.
type silentConn struct {
	net.Conn
	host   byte
	closed bool
}

func (c *silentConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, c.host)} }
func (c *silentConn) Close() error         { c.closed = true; return nil }

// bytesConn is a connection on which bytes arrive.
type bytesConn struct {
	net.Conn
	*bytes.Reader
}

func (c bytesConn) Read(b []byte) (int, error)  { return c.Reader.Read(b) }
func (c bytesConn) Write(b []byte) (int, error) { return len(b), nil }
func (c bytesConn) SetDeadline(time.Time) error { return nil }

// Whatever bytes come first on a connection, nothing is read beyond the limit, and what is
// read can be said again.
func FuzzRegistration(f *testing.F) {
	f.Add([]byte(`{"group":"job","size":3,"rank":1,"port":4000,"nonce":"x","mac":"AA=="}` + "\n"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		_, _ = readRegistration(bytesConn{Reader: r}, nil)
		if read := len(b) - r.Len(); read > maxRegistration {
			t.Errorf("%d bytes were read", read)
		}
	})
}
