package bench

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		values  []time.Duration
		p, want int
	}{
		{nil, 50, 0},
		{hundred[:1], 10, 1},
		{hundred[:1], 100, 1},
		{hundred[:2], 50, 1},
		{hundred[:3], 50, 2},
		{hundred, 10, 10},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
	} {
		if got := Percentile(c.values, c.p); got != time.Duration(c.want) {
			t.Errorf("p%d of %d values: %d, want %d", c.p, len(c.values), got, c.want)
		}
	}
}

func TestRecord(t *testing.T) {
	r := Record{3, 7, 1 << 60}
	if b := r.append(nil); len(b) != recordSize || parseRecord(b) != r {
		t.Errorf("%+v became %+v", r, parseRecord(b))
	}
}
