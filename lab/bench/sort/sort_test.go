package sort

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a failure has cost is the difference of medians.
func TestResult(t *testing.T) {
	c := Config{Records: 10, Members: 4, GNU: true}
	if r := c.result(nil); r.Trials != 0 || len(r.Killed) != 0 {
		t.Errorf("of nothing: %+v", r)
	}
	var trials []trial
	for _, ms := range []time.Duration{200, 100, 300} {
		one := trial{clean: usage{ms * time.Millisecond, time.Second}, gnu: usage{2 * ms * time.Millisecond, time.Minute}}
		for i := range phases() {
			cost := time.Duration(10*(i+1)) * time.Millisecond
			one.killed = append(one.killed, killedPhase{one.clean.wall + cost, one.clean.wall + 4*cost, i > 0 || ms < 300})
		}
		trials = append(trials, one)
	}
	r := c.result(trials)
	if r.Job != 200 || r.GNU != 400 || r.OfGNU != 0.5 || r.JobCPU != 1000 || r.GNUCPU != 60_000 || r.Bytes != 1000 ||
		r.Trials != 3 {
		t.Errorf("%+v", r)
	}
	for i, k := range r.Killed {
		want := PhaseResult{phases()[i], float64(10 * (i + 1)), float64(40 * (i + 1)), 0.25, i > 0}
		if k != want {
			t.Errorf("%+v, want %+v", k, want)
		}
	}
}

func TestInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "input")
	if err := writeInput(name, 50, 1); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil || len(b) != 50*recordSize {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		if len(line) != recordSize-1 {
			t.Errorf("line %d has %d bytes: %q", i, len(line), line)
		}
	}
}

// The time of a phase ends when the next one begins.
func TestPhaseLog(t *testing.T) {
	l := newPhaseLog()
	for _, text := range []string{"phase sam", "ple\nphase exchange\nwarning\n", "phase sort\n", "phase write\n"} {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.others) != 1 || l.others[0] != "warning" {
		t.Errorf("other lines are %q", l.others)
	}
	for i := range l.began {
		<-l.began[i]
		l.at[i] = time.Unix(int64(10*i*i), 0)
	}
	j := job{logs: []*phaseLog{l}}
	for i, took := range j.took(0, time.Unix(200, 0)) {
		if want := []time.Duration{10, 30, 50, 110}[i] * time.Second; took != want {
			t.Errorf("phase %d took %v, want %v", i, took, want)
		}
	}
}
