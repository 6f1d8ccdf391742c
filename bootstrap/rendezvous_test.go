package bootstrap

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// meetAll has processes meet, and returns what each has got, by its place in the list.
func meetAll(ctx context.Context, processes ...Assignment) ([]Assignment, []error) {
	got, errs := make([]Assignment, len(processes)), make([]error, len(processes))
	var all sync.WaitGroup
	for i, a := range processes {
		all.Go(func() {
			time.Sleep(time.Duration(len(processes)-i) * 10 * time.Millisecond) // rank 0 comes last
			if got[i], errs[i] = a.Meet(ctx); errs[i] == nil {
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
		list = append(list, Assignment{Rank: protocol.Rank(rank), Size: protocol.Rank(size), Group: "job", Rendezvous: at, Secret: []byte(secret)})
	}
	return list
}

func TestProcessesMeet(t *testing.T) {
	for _, secret := range []string{"", "sixteen and more bytes"} {
		got, errs := meetAll(t.Context(), processes(freeAddress(t, "127.0.0.1"), 9, secret)...)
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
	job := processes(freeAddress(t, "127.0.0.1"), 3, "sixteen and more bytes")
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

// Those that wait learn who is missing, and who does not belong there.
func TestMeetingsThatFail(t *testing.T) {
	at := freeAddress(t, "127.0.0.1")
	job := processes(at, 4, "")
	other, large, twice := job[2], job[2], job[1]
	other.Group, large.Size = "other", 5
	for _, c := range []struct {
		who  []Assignment
		i    int
		want string
	}{
		{[]Assignment{job[0], job[1], job[3]}, 1, "ranks [2] of 4 have not come"},
		{[]Assignment{job[0], job[1], job[3]}, 0, "ranks [2] of 4 have not come"},
		{[]Assignment{job[0], job[1], other}, 2, `is of the job "other"`},
		{[]Assignment{job[0], job[1], large}, 2, "of a job of 5 processes"},
		{[]Assignment{job[0], twice, job[1]}, 1, "rank 1 is here twice"},
		{[]Assignment{job[1]}, 0, "refused"},
		{[]Assignment{job[0], job[0]}, 0, "rank 0 is the rendezvous"}, // the other one has the address
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, errs := meetAll(ctx, c.who...)
		cancel()
		if err := errs[c.i]; err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
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
		{map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PLEACH_RENDEZVOUS": "a:9"}, "a:9"},
		{map[string]string{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}, "a:27600"},
		{map[string]string{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}, ""},
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

// bytesConn is a connection on which bytes arrive.
type bytesConn struct {
	net.Conn
	*bytes.Reader
}

func (c bytesConn) Read(b []byte) (int, error)      { return c.Reader.Read(b) }
func (c bytesConn) SetReadDeadline(time.Time) error { return nil }

// Whatever bytes come first on a connection, nothing is read beyond the limit, and what is
// read can be said again.
func FuzzRegistration(f *testing.F) {
	f.Add([]byte(`{"group":"job","size":3,"rank":1,"port":4000,"nonce":"x","mac":"AA=="}` + "\n"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		_, _ = readRegistration(bytesConn{Reader: r})
		if read := len(b) - r.Len(); read > maxRegistration {
			t.Errorf("%d bytes were read", read)
		}
	})
}
