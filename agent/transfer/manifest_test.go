package transfer

import (
	"bytes"
	"crypto/sha256"
	"log/slog"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawManifest draws one that is correct.
func drawManifest(t *rapid.T) *manifest {
	m := &manifest{
		sender: rapid.Uint64().Draw(t, "sender"),
		name:   rapid.SampledFrom([]string{"a", "a b.txt", "..x", ".hidden", strings.Repeat("n", maxName)}).Draw(t, "name"),
		dir:    rapid.SampledFrom([]string{".", "/", "a", "/a/b", "a/..b"}).Draw(t, "dir"),
		mode:   0o640,
		chunk:  minChunk << rapid.IntRange(0, bits.Len(maxChunk/minChunk)-1).Draw(t, "chunk"),
		size:   rapid.Int64Range(0, 10*minChunk).Draw(t, "size"),
	}
	m.hashes = make([]Hash, chunks(m.size, m.chunk))
	for i := range m.hashes {
		m.hashes[i][0] = byte(i)
	}
	return m
}

// A manifest survives its travel, and a changed byte of it does not pass unless it is of a
// field that has no check of its own.
func TestManifestTravels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawManifest(t).appendTo(nil)
		m, err := parseManifest(b)
		if err != nil || !bytes.Equal(m.appendTo(nil), b) {
			t.Fatalf("%+v, %v", m, err)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := parseManifest(b[:cut]); err == nil {
			t.Fatalf("%d of %d bytes are a manifest", cut, len(b))
		}
		if len(m.hashes) > 0 {
			b[len(b)-1-rapid.IntRange(0, 63).Draw(t, "flip")] ^= 1
			if _, err := parseManifest(b); err == nil {
				t.Fatal("a changed hash passes")
			}
		}
	})
}

func TestNamesAreChecked(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "a/b", "/a", `a\b`, "a\x00", ".x" + partSuffix,
		strings.Repeat("n", maxName+1),
	} {
		if checkName(name) == nil {
			t.Errorf("%q passes as the name of a file", name)
		}
	}
	for _, dir := range []string{
		"", "..", "../a", "a/../..", "a/", "./a", "/..", "a//b", `a\b`, "a\x00",
		strings.Repeat("n", maxDir+1),
	} {
		if checkDir(dir) == nil {
			t.Errorf("%q passes as the name of a folder", dir)
		}
	}
}

// FuzzManifest feeds bytes from outside: what passes is canonical.
func FuzzManifest(f *testing.F) {
	m := &manifest{sender: 7, name: "file", dir: "/srv", mode: 0o644, size: 5000, chunk: minChunk, hashes: make([]Hash, 2)}
	f.Add(m.appendTo(nil))
	f.Add((&manifest{name: "empty", dir: ".", chunk: minChunk}).appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err == nil && !bytes.Equal(m.appendTo(nil), b) {
			t.Errorf("%x is understood as %x", b, m.appendTo(nil))
		}
	})
}

// FuzzMessage feeds bytes of a member to what reads messages and answers.
func FuzzMessage(f *testing.F) {
	lacks := fullSet(70)
	f.Add((&message{kind: chunk, copy: 1, number: 2, data: []byte("x")}).appendHead(nil), 70)
	f.Add((&answer{state: partial, lacks: lacks}).append(nil), 70)
	f.Add((&answer{state: failed, why: "full"}).append(nil), 0)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if m, err := parseMessage(b); err == nil && !bytes.Equal(append(m.appendHead(nil), m.data...), b) {
			t.Errorf("%x is understood as %+v", b, m)
		}
		n &= 1023
		if a, err := parseAnswer(b, n); err == nil && !bytes.Equal(a.append(nil), b) {
			t.Errorf("%x is understood as %+v", b, a)
		}
	})
}

// To verify a long file takes long, so each chunk of it is a sign that the copy goes on.
func TestVerifyingShowsProgress(t *testing.T) {
	const chunk, chunks = 100, 7
	content := make([]byte, chunk*chunks)
	m := &manifest{name: "file", size: int64(len(content)), chunk: chunk, mode: 0o600}
	for range chunks {
		m.hashes = append(m.hashes, sha256.Sum256(content[:chunk]))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, m.name), content, m.mode); err != nil {
		t.Fatal(err)
	}
	target, err := openTarget(dir, nil, m.name)
	if err != nil {
		t.Fatal(err)
	}
	defer target.folder.Close()
	signs := 0
	target.verified = func() { signs++ }
	if !target.has(m, nil) || signs != chunks {
		t.Errorf("%d signs of %d chunks", signs, chunks)
	}
}

// Of a copy that has ended, a member keeps the answer and not the manifest: a sender that
// never says that its copies are over does not fill the memory.
func TestManifestsOfEndedCopiesAreForgotten(t *testing.T) {
	s := &Service{
		config: Config{Logger: slog.New(slog.DiscardHandler)}, receives: make(map[key]*receive),
		targets: make(map[string]*receive),
	}
	k := key{from: 1, copy: 2}
	r := newReceive(k, &manifest{hashes: make([]Hash, maxChunks)})
	s.receives[k], s.targets["file"] = r, r
	r.round = 3
	r.settle(answer{state: done})
	s.forget("file", r)
	known := s.receives[k]
	if known == nil || len(known.manifest.hashes) > 0 || len(s.targets) > 0 {
		t.Fatalf("kept: %+v", known)
	}
	before, _ := r.reply(3)
	if after, ok := known.reply(3); !ok || !bytes.Equal(before, after) {
		t.Errorf("the answer was %x, and is %x", before, after)
	}
	s.end(k)
	if len(s.receives) > 0 {
		t.Error("the copy is over, and known")
	}
}
