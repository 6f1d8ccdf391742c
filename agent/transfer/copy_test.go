package transfer

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// writeFile writes a file with random content.
func writeFile(t testing.TB, name string, size int, seed uint64) string {
	t.Helper()
	b := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = random.Read(b)
	if err := os.WriteFile(name, b, 0o640); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// start makes a group of n members, with a directory each.
func start(t testing.TB, n int) (*network, []*node) {
	net := newNetwork()
	var nodes []*node
	for rank := range n {
		nodes = append(nodes, net.join(t, rank, t.TempDir(), Config{}))
	}
	return net, nodes
}

func mustCopy(t testing.TB, from *node, name, dir string) Result {
	t.Helper()
	r, err := from.service.CopyFile(context.Background(), name, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryMemberGetsTheFile(t *testing.T) {
	_, nodes := start(t, 5)
	for _, size := range []int{0, 1, minChunk, 3*minChunk + 1, 100 * minChunk} {
		name := filepath.Join(t.TempDir(), "file")
		want := writeFile(t, name, size, 1)
		r := mustCopy(t, nodes[2], name, "sub/folder")
		if r.Count(Done) != 5 || r.Broadcast != r.Chunks || r.Sent != 0 {
			t.Errorf("%d bytes: %+v", size, r)
		}
		for _, m := range nodes {
			if m.file("sub/folder/file") != want {
				t.Errorf("%d bytes: rank %d has another file", size, m.self.Rank)
			}
			if info, err := os.Stat(filepath.Join(m.dir, "sub/folder/file")); err != nil || info.Mode() != 0o640 {
				t.Errorf("%v, %v", info, err)
			}
			if left, _ := filepath.Glob(filepath.Join(m.dir, "sub/folder/.*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		}
		if r := mustCopy(t, nodes[0], name, "sub/folder"); r.Count(Present) != 5 || r.Broadcast+r.Sent != 0 {
			t.Errorf("again: %+v", r)
		}
	}
}

// A partial file that is there counts for the chunks that are right in it.
func TestOnlyMissingChunksTravel(t *testing.T) {
	_, nodes := start(t, 4)
	name := filepath.Join(t.TempDir(), "file")
	want := writeFile(t, name, 10*minChunk+100, 2)
	partial := func(m *node, chunks ...int) {
		b := make([]byte, len(want))
		for _, i := range chunks {
			copy(b[i*minChunk:], want[i*minChunk:min(len(want), (i+1)*minChunk)])
		}
		if err := os.WriteFile(filepath.Join(m.dir, ".file"+partSuffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	partial(nodes[0], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	partial(nodes[1], 0, 1, 2, 3, 4, 5, 10)
	partial(nodes[2], 0, 1, 2, 6, 7, 8, 9, 10)
	partial(nodes[3], 0, 1, 2, 6, 7, 8)
	// The others lack four, three and five chunks, and no more than two of them the same.
	r := mustCopy(t, nodes[0], name, ".")
	if r.Broadcast != 0 || r.Sent != 4+3+5 {
		t.Errorf("%d chunks were broadcast and %d sent", r.Broadcast, r.Sent)
	}
	for _, m := range nodes {
		if m.file("file") != want {
			t.Errorf("rank %d has another file", m.self.Rank)
		}
	}
}

// Receivers write only where they are allowed to.
func TestReceiversRefuse(t *testing.T) {
	net, nodes := start(t, 2)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(nodes[1].dir, "link")); err != nil {
		t.Fatal(err)
	}
	closed := net.join(t, 2, t.TempDir(), Config{Dirs: []string{}})
	name := filepath.Join(t.TempDir(), "file")
	writeFile(t, name, 100, 3)
	for dir, why := range map[string]string{
		outside:            "takes no files in",
		"link":             "is not a directory",
		nodes[0].dir + "x": "takes no files in",
	} {
		r := mustCopy(t, nodes[0], name, dir)
		if got := r.Members[1]; got.Outcome != Failed || !strings.Contains(got.Error, why) {
			t.Errorf("%s: %+v", dir, got)
		}
	}
	r := mustCopy(t, nodes[0], name, ".")
	if got := r.Members[2]; got.Outcome != Failed || r.Count(Done) != 2 {
		t.Errorf("%+v", r)
	}
	if entries, _ := os.ReadDir(closed.dir); len(entries) > 0 {
		t.Errorf("a member that takes no files has %v", entries)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("outside is %v", entries)
	}
	if _, err := nodes[0].service.CopyFile(context.Background(), name, "../x", nil); err == nil {
		t.Error("a target above the folder passes")
	}
}

// A file that changes while it is sent arrives nowhere.
func TestChangedFileIsNoticed(t *testing.T) {
	_, nodes := start(t, 3)
	name := filepath.Join(t.TempDir(), "file")
	writeFile(t, name, 10*minChunk, 4)
	var once sync.Once
	_, err := nodes[0].service.CopyFile(context.Background(), name, ".", func(p Progress) {
		if p.Total > 0 {
			once.Do(func() { writeFile(t, name, 10*minChunk, 5) })
		}
	})
	if err != ErrChanged {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(nodes[1].dir, "file")); err == nil {
		t.Error("the file is there")
	}
}

// Members die, join, come back with what they had, and are interrupted, and several copies
// go on at once. At the end each live member has each file.
func TestCopiesUnderChurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		net := newNetwork()
		n := rapid.IntRange(2, 6).Draw(rt, "members")
		nodes := make([]*node, n)
		for rank := range nodes {
			nodes[rank] = net.join(t, rank, t.TempDir(), Config{})
		}
		senders := rapid.IntRange(1, 2).Draw(rt, "senders")
		folder := t.TempDir()
		var names, wants []string
		for i := range senders {
			names = append(names, filepath.Join(folder, string(rune('a'+i))))
			wants = append(wants, writeFile(t, names[i], rapid.IntRange(0, 30*minChunk).Draw(rt, "size"),
				rapid.Uint64().Draw(rt, "content")))
		}
		// After each so many chunks, something happens to one that is not a sender.
		events := rapid.SliceOfN(rapid.IntRange(senders, n), 0, 4).Draw(rt, "events")
		var mu sync.Mutex
		happen := func() {
			mu.Lock()
			defer mu.Unlock()
			if len(events) == 0 {
				return
			}
			rank := events[0]
			events = events[1:]
			if rank == n {
				nodes = append(nodes, net.join(t, len(nodes), t.TempDir(), Config{}))
				return
			}
			old := nodes[rank]
			net.kill(rank, old)
			nodes[rank] = net.join(t, rank, old.dir, Config{})
		}
		var wg sync.WaitGroup
		for i, from := range slices.Clone(nodes[:senders]) {
			wg.Go(func() {
				steps := 0
				r, err := from.service.CopyFile(context.Background(), names[i], ".", func(Progress) {
					steps++
					if steps%7 == 3 {
						happen()
					}
				})
				if err != nil || r.Error() != nil {
					rt.Errorf("%v, %v", err, r.Error())
				}
			})
		}
		wg.Wait()
		for i := range senders {
			mustCopy(t, nodes[i], names[i], ".") // for those that came after its end
			for rank, m := range nodes {
				if m.file(filepath.Base(names[i])) != wants[i] {
					rt.Errorf("rank %d has another file than %s", rank, names[i])
				}
			}
		}
		for rank, m := range nodes {
			net.kill(rank, m)
		}
	})
}

// A copy that is interrupted goes on where it has ended.
func TestInterruptedCopyGoesOn(t *testing.T) {
	_, nodes := start(t, 3)
	name := filepath.Join(t.TempDir(), "file")
	want := writeFile(t, name, 200*minChunk, 6)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := nodes[0].service.CopyFile(ctx, name, ".", func(p Progress) {
		if p.Sent > 100*minChunk {
			cancel()
		}
	})
	if err == nil || r.Broadcast < 100 || r.Count(Unknown) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	r = mustCopy(t, nodes[0], name, ".")
	if r.Broadcast == 0 || r.Broadcast > 110 || r.Count(Done) != 3 {
		t.Errorf("%+v", r)
	}
	for _, m := range nodes {
		if m.file("file") != want {
			t.Errorf("rank %d has another file", m.self.Rank)
		}
	}
}

// A file with a rate takes as long as that says.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := start(t, 3)
		const size = 20 * minChunk
		content := bytes.NewReader(make([]byte, size))
		began := time.Now()
		r, err := nodes[0].service.Copy(t.Context(), File{
			Content: content, Name: "file", Mode: 0o600, Size: size,
			Rate: minChunk,
		}, ".", nil)
		if err != nil || r.Count(Done) != 3 {
			t.Fatal(err, r)
		}
		if took, want := time.Since(began), 19*time.Second; took < want || took > want+time.Second {
			t.Errorf("it took %v, not %v", took, want)
		}
	})
}
