package restart

import (
	"testing"
	"time"
)

// What a way has lost is against the job without a failure of the same trial.
func TestRestartResult(t *testing.T) {
	c := Config{Members: 4, Rounds: 10, Elements: 1, Compute: time.Millisecond, Every: 2}
	if r := c.result(nil); r.Trials != 0 || len(r.Lost) != 0 {
		t.Errorf("of nothing: %+v", r)
	}
	var trials [][]time.Duration
	for _, job := range []time.Duration{100, 200, 300} { // ms
		var times []time.Duration
		for way := range ways() {
			times = append(times, (job+time.Duration(10*way))*time.Millisecond)
		}
		trials = append(trials, times)
	}
	r := c.result(trials)
	if r.Job != 200 || len(r.Lost) != len(ways())-1 {
		t.Fatalf("%+v", r)
	}
	for i, lost := range r.Lost {
		want := float64(10 * (i + 1))
		if lost.P50 != want || lost.Min != want || lost.Max != want || lost.Part != want/200 {
			t.Errorf("%+v, want %v", lost, want)
		}
	}
}
