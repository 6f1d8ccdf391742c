package agent

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/agent/backfill"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// tester is what tests and properties have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// storeLimits make several segments of a few hundred messages.
var storeLimits = retention.Limits{Messages: 1000, Bytes: 8 << 10}

func openStore(t tester, dir string, log *slog.Logger) *store {
	t.Helper()
	s, err := newStore(dir, storeLimits, log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill publishes messages of one sender with the numbers from one up to another, one write for
// each.
func fillStore(s *store, from, until int) {
	for n := from; n < until; n++ {
		a := arrival{counted: true, message: retention.Message{
			View: 1, Topic: "t", Data: fmt.Append(nil, n),
			Time: time.Unix(int64(n), 0),
		}}
		s.publish([]retention.Message{s.place(&a)})
	}
}

// retained are the numbers of the messages that subscribers can get.
func retained(t tester, s *store) (numbers []int) {
	t.Helper()
	s.log.Select(1, retention.Limits{}, func(*retention.Message) bool { return true }, func(m *retention.Message) bool {
		n := 0
		if _, err := fmt.Sscan(string(m.Data), &n); err != nil || int(m.Index) != n {
			t.Fatal("message", string(m.Data), "has the index", m.Index)
		}
		numbers = append(numbers, n)
		return true
	})
	return numbers
}

// segmentFiles are the files of a journal.
func segmentFiles(t tester, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "messages", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What was published is there after the process is killed: numbers, IDs and positions.
func TestStoreOutlivesItsProcess(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	s := openStore(t, dir, log)
	if _, err := newStore(dir, storeLimits, log); err == nil {
		t.Fatal("two processes use one folder")
	}
	fillStore(s, 1, 500)
	c, err := s.log.Subscribe(retention.Filter{}, retention.FromOldest)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := retained(t, s)
	_ = s.journal.Close() // all that a killed process does
	s = openStore(t, dir, log)
	if after := retained(t, s); !slices.Equal(after, before) {
		t.Fatalf("%v, before %v", after, before)
	}
	if got := s.positions.Next(backfill.Stream{View: 1}); got != 500 {
		t.Errorf("the next message has the index %d", got)
	}
	c, err = s.log.Subscribe(retention.Filter{}, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Next(t.Context()); err != nil || string(again.Message.Data) != fmt.Sprint(before[1]) {
		t.Errorf("%+v, %v", again, err)
	}
	size := int64(0)
	for _, file := range segmentFiles(t, dir) {
		if info, err := os.Stat(file); err == nil {
			size += info.Size()
		}
	}
	if size > 3*int64(storeLimits.Bytes) {
		t.Errorf("%d bytes on file", size)
	}
	_ = s.journal.Close()
}

// Whatever happens to the files, what is there after it are messages that were published, in
// order and without a hole; and the next one has the index that follows the last.
func TestDamagedStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "pleach")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		log := slog.New(slog.DiscardHandler)
		s := openStore(t, dir, log)
		fillStore(s, 1, 200)
		_ = s.journal.Close()
		files := segmentFiles(t, dir)
		file := rapid.SampledFrom(files).Draw(t, "file")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		switch rapid.IntRange(0, 4).Draw(t, "damage") {
		case 0:
			b = b[:at]
		case 1:
			b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 2:
			b = append(b, b[:at]...)
		case 3: // the file is there twice
			file = filepath.Join(dir, "messages", fmt.Sprintf("%016d.log", 99))
		case 4:
			b = nil
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time nothing is damaged any more
			s = openStore(t, dir, log)
			got := retained(t, s)
			for i := range got {
				if got[i] != got[0]+i {
					t.Fatal("not in order: ", got)
				}
			}
			have := int(s.positions.Next(backfill.Stream{View: 1})) - 1
			if len(got) > 0 && got[len(got)-1] != have || have > 199 {
				t.Fatal("the position is ", have, " after ", got)
			}
			_ = s.journal.Close()
		}
	})
}

// A disk that fails is told, and done without; when it works again, the log is saved again.
func TestStoreWithoutDisk(t *testing.T) {
	dir, log := t.TempDir(), &testutil.LogBuffer{}
	s := openStore(t, dir, log.Logger())
	obstacle := filepath.Join(dir, "messages", fmt.Sprintf("%016d.log", 2)) // a directory in the place of the next segment
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	fillStore(s, 1, 500)
	if s.saveError() == nil || strings.Count(log.String(), "is not saved") != 1 {
		t.Errorf("%v, %s", s.saveError(), log)
	}
	if got := retained(t, s); len(got) == 0 || got[len(got)-1] != 499 {
		t.Errorf("subscribers have %v", got)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	s.failedAt = time.Time{} // some time later
	fillStore(s, 500, 510)
	if s.saveError() != nil || !strings.Contains(log.String(), "is saved again") {
		t.Errorf("%v, %s", s.saveError(), log)
	}
	_ = s.journal.Close()
	s = openStore(t, dir, log.Logger())
	if got := retained(t, s); len(got) != 10 || got[0] != 500 {
		t.Errorf("after a restart: %v", got)
	}
	_ = s.journal.Close()
}

// FuzzStore takes any records from a journal: checksums keep out damage, and not a file that
// another program has written.
func FuzzStore(f *testing.F) {
	s := openStore(f, "", slog.New(slog.DiscardHandler))
	fillStore(s, 1, 5)
	begin := s.snapshot()
	m := retention.Message{Topic: "t", From: 1, View: 2, Index: 3, Data: []byte("x")}
	f.Add(begin, m.Append([]byte{recordMessage}))
	f.Add(begin, []byte(`v{"number":2,"print":3,"members":4}`))
	f.Fuzz(func(t *testing.T, begin, record []byte) {
		s := openStore(t, "", slog.New(slog.DiscardHandler))
		if s.restore(begin) != nil {
			return
		}
		_ = s.replay(record)
		s.log.Begin("now")
		fillStore(s, 1, 3)
		c, err := s.log.Subscribe(retention.Filter{}, retention.FromOldest)
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := c.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e.Message != nil && e.Message.Topic == "t" && string(e.Message.Data) == "2" {
				return
			}
		}
	})
}
