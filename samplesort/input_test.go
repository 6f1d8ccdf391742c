package samplesort

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"pgregory.net/rapid"
)

// The generated records are gensort's.
func TestGenerate(t *testing.T) {
	b, err := Generate(1_000_000).Read(t.Context(), Records, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	if key := string(b[:keySize]); key != "JimGrayRIP" {
		t.Errorf("the first key is %q, want the increment of the generator, JimGrayRIP", key)
	}
	const second = "00000000000000000000000000000001\x88\x99\xaa\xbb" +
		"9999444488885555CCCC777755555555BBBB666644446666\xcc\xdd\xee\xff"
	if got := string(b[recordSize+12:][:88]); got != second {
		t.Errorf("the second record ends with %q, want %q", got, second)
	}
}

// The checksum of ten million records is the one that Hadoop's TeraValidate is known to
// print for them. That of fewer records was computed by the code that computed this one.
func TestChecksum(t *testing.T) {
	records, want := 100_000, "c327a1c42c28"
	if testutil.Full.On() {
		records, want = 10_000_000, "4c49607ac53602"
	}
	const tasks = 100
	var sum Summary
	for task := range tasks {
		b, err := Generate(records).Read(t.Context(), Records, task, tasks)
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.plus(tableOf(t, rules{}, b).summarize())
	}
	if sum.Records != records || sum.Checksum() != want {
		t.Errorf("%d records have checksum %s, want %s", sum.Records, sum.Checksum(), want)
	}
}

func TestSharesAreTheInput(t *testing.T) {
	generated, err := Generate(1000).Read(t.Context(), Records, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 20).Draw(t, "tasks")
		checkShares(t, Generate(1000), Records, tasks, generated)

		texts := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 0, 60, 60), 1, 4).Draw(t, "texts")
		var want strings.Builder
		for _, text := range texts {
			want.WriteString(text)
			if text != "" && !strings.HasSuffix(text, "\n") {
				want.WriteByte('\n')
			}
		}
		checkShares(t, writeFiles(t, dir, texts), Lines, tasks, []byte(want.String()))

		pieces := []string{string(generated[:5*recordSize]), "", string(generated[5*recordSize : 30*recordSize])}
		checkShares(t, writeFiles(t, dir, pieces), Records, tasks, generated[:30*recordSize])
	})
}

// Lines that are longer than what is read at once.
func TestLongLines(t *testing.T) {
	text := strings.Repeat(strings.Repeat("x", 10_000)+"\n", 7)
	input := writeFiles(t, t.TempDir(), []string{text})
	for tasks := 1; tasks < 20; tasks++ {
		checkShares(t, input, Lines, tasks, []byte(text))
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "missing"), dir, short} {
		if _, err := Files(name).Read(t.Context(), Records, 0, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("reading %s returns %v, which does not name it", name, err)
		}
	}
}

type tester interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func checkShares(t tester, in Input, f Format, tasks int, want []byte) {
	shares := make([][]byte, tasks)
	for task := range shares {
		var err error
		shares[task], err = in.Read(bg(), f, task, tasks)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.check(shares[task]); err != nil {
			t.Fatalf("the share of task %d of %d: %v", task, tasks, err)
		}
	}
	if got := slices.Concat(shares...); !bytes.Equal(got, want) {
		t.Fatalf("%d shares are %q, want %q", tasks, got, want)
	}
}

func writeFiles(t tester, dir string, texts []string) Input {
	var names []string
	for i, text := range texts {
		name := filepath.Join(dir, fileName(i))
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return Files(names...)
}
