//go:build unix

package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Members in processes of their own die in the middle of a copy, by SIGKILL.

// roleVariable has the config of a process that is a member.
const roleVariable = "PLEACH_TRANSFER_MEMBER"

type memberConfig struct {
	ID, Dir string
	Seed    string // "": it creates the group
}

func init() { testutil.PlayRole(roleVariable, playMember) }

// playMember is a member. It copies the files whose names it reads, waits at the half of
// each for another line, and prints the result.
func playMember(c memberConfig) {
	ctx := context.Background()
	var service atomic.Pointer[transfer.Service]
	config := pleach.Config{
		Group: "copies", ID: c.ID, Listen: "127.0.0.1:0",
		Limits: pleach.Limits{SegmentSize: transfer.SegmentSize}, OnMessage: func(m pleach.Message, _ error) {
			if s := service.Load(); s != nil && m.Topic == transfer.Topic {
				s.Receive(m)
			}
		},
	}
	var g *pleach.Group
	var err error
	if c.Seed == "" {
		g, err = pleach.Create(ctx, config)
	} else {
		g, err = pleach.Join(ctx, config, c.Seed)
	}
	if err != nil {
		panic(err)
	}
	s, err := transfer.New(g, transfer.Config{Dirs: []string{c.Dir}})
	if err != nil {
		panic(err)
	}
	service.Store(s)
	fmt.Println("address", g.Self().Address)
	for lines := json.NewDecoder(os.Stdin); ; {
		var name string
		if lines.Decode(&name) != nil {
			return
		}
		var half sync.Once
		r, err := s.CopyFile(ctx, name, ".", func(p transfer.Progress) {
			if p.Sent > 0 && p.Sent >= p.Total/2 {
				half.Do(func() {
					fmt.Println("half of", name)
					_ = lines.Decode(new(string))
				})
			}
		})
		text, _ := json.Marshal(r)
		fmt.Println("result", err, string(text))
	}
}

// fleet is a group of processes, of which the first one sends.
type fleet struct {
	t       *testing.T
	members []*testutil.Process
	dirs    []string
	seed    string
	file    string
	content []byte
	copies  int
}

func startFleet(t *testing.T) *fleet {
	f := &fleet{t: t, content: make([]byte, testutil.Bytes.Or(8<<20)), file: filepath.Join(t.TempDir(), "file")}
	_, _ = rand.NewChaCha8([32]byte{7}).Read(f.content)
	if err := os.WriteFile(f.file, f.content, 0o600); err != nil {
		t.Fatal(err)
	}
	for rank := range testutil.Members.Or(6) {
		f.dirs = append(f.dirs, t.TempDir())
		f.members = append(f.members, nil)
		f.start(rank)
	}
	return f
}

// start starts a member, again if it was killed: it then has its old ID and directory.
func (f *fleet) start(rank int) {
	f.members[rank] = testutil.StartRole(f.t, roleVariable, memberConfig{
		ID:  fmt.Sprint("member-", rank),
		Dir: f.dirs[rank], Seed: f.seed,
	})
	address, _ := f.members[rank].Wait(f.t, "address ")
	if rank == 0 {
		f.seed = address
	}
}

// half begins to copy, and returns in the middle.
func (f *fleet) half() {
	f.t.Helper()
	f.members[0].Write(f.file)
	f.lines("half of", 1)
}

// lines waits until the sender has printed so many lines with a prefix, and returns the rest
// of them. A long file takes its time.
func (f *fleet) lines(prefix string, n int) (rest []string) {
	f.t.Helper()
	complete := testutil.Within(10*time.Minute, func() bool {
		rest = rest[:0]
		for _, line := range f.members[0].All() {
			if text, ok := strings.CutPrefix(line, prefix); ok {
				rest = append(rest, text)
			}
		}
		return len(rest) >= n
	})
	if !complete {
		f.t.Fatalf("%d of %d lines with %q", len(rest), n, prefix)
	}
	return rest
}

// result lets the copy go on, and returns its result.
func (f *fleet) result() (r transfer.Result) {
	f.t.Helper()
	f.members[0].Write("go on")
	f.copies++
	err, text, _ := strings.Cut(f.lines("result ", f.copies)[f.copies-1], " ")
	if err != "<nil>" {
		f.t.Fatal(err, text)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		f.t.Fatal(err)
	}
	return r
}

// has reports whether a member has the file.
func (f *fleet) has(rank int) bool {
	b, err := os.ReadFile(filepath.Join(f.dirs[rank], "file"))
	return err == nil && bytes.Equal(b, f.content)
}

// missing counts the chunks that the partial file of a member lacks.
func (f *fleet) missing(rank, chunks int) (n int) {
	b, err := os.ReadFile(filepath.Join(f.dirs[rank], ".file.pleach-part"))
	if err != nil {
		return chunks
	}
	size := len(f.content) / chunks
	for i := range chunks {
		if !bytes.Equal(b[i*size:(i+1)*size], f.content[i*size:(i+1)*size]) {
			n++
		}
	}
	return n
}

// An inner member of the tree dies halfway: every survivor has the file.
func TestInnerMemberKilled(t *testing.T) {
	f := startFleet(t)
	f.half()
	f.members[1].Kill()
	r := f.result()
	if r.Count(transfer.Done) != len(f.members)-1 || r.Count(transfer.Gone) != 1 {
		t.Errorf("%+v", r)
	}
	for rank := range f.members {
		if rank != 1 && !f.has(rank) {
			t.Errorf("rank %d has another file", rank)
		}
	}
	t.Logf("%d chunks were broadcast and %d sent, of %d", r.Broadcast, r.Sent, r.Chunks)
}

// A receiver that was killed halfway is started again, before or after the end of the copy:
// only the chunks that it lacks travel.
func TestKilledReceiverResumes(t *testing.T) {
	for _, during := range []bool{false, true} {
		t.Run(fmt.Sprint("during=", during), func(t *testing.T) {
			f := startFleet(t)
			last := len(f.members) - 1
			chunks := len(f.content) >> 18
			f.half()
			testutil.Eventually(t, "a chunk", func() bool { return f.missing(last, chunks) < chunks })
			f.members[last].Kill()
			missing := f.missing(last, chunks)
			if missing == 0 || missing == chunks {
				t.Fatalf("%d of %d chunks are missing in the middle of the copy", missing, chunks)
			}
			if during {
				f.start(last)
			}
			r := f.result()
			if !during {
				if r.Sent > 0 {
					t.Errorf("%+v", r)
				}
				f.start(last)
				f.members[0].Write(f.file)
				r = f.result()
				if r.Broadcast != 0 || r.Sent != missing {
					t.Errorf("%d chunks were broadcast and %d sent, %d were missing", r.Broadcast, r.Sent, missing)
				}
			}
			if r.Broadcast > chunks || r.Sent > missing {
				t.Errorf("%d chunks were broadcast and %d sent, %d were missing", r.Broadcast, r.Sent, missing)
			}
			t.Logf("%d of %d chunks were missing: %d were broadcast and %d sent", missing, chunks, r.Broadcast, r.Sent)
			for rank := range f.members {
				if !f.has(rank) {
					t.Errorf("rank %d has another file: %+v", rank, r)
				}
			}
		})
	}
}
