package calibrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/collective"
)

func TestNetworkOf(t *testing.T) {
	all := func(d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, 10) }
	const us = time.Microsecond
	n := networkOf(all(20*us), all(20*us+9*3*us), 10, all(20*us+1000*us), 1_000_000)
	if n.Hop.Median != 10*us || n.Overhead.Median != 3*us || n.Latency != 4*us || n.Bandwidth < 0.99e9 ||
		n.Bandwidth > 1.01e9 {
		t.Errorf("%+v", n)
	}
	if l := n.Link(); l != (collective.Link{Latency: 4 * us, Overhead: 3 * us, Bandwidth: n.Bandwidth}) {
		t.Errorf("%+v", l)
	}
	// A burst that is slower than single messages shows the gap, not the overhead.
	n = networkOf(all(20*us), all(20*us+9*30*us), 10, all(20*us), 1)
	if l := n.Link(); l.Latency != 0 || l.Overhead != 5*us {
		t.Errorf("%+v", l)
	}
}

// What is chosen is never predicted to take longer than one level does.
func TestChoices(t *testing.T) {
	levels := 0
	for _, c := range Choices(collective.Network{}, 64, 4) {
		if c.Algorithm == "" || c.Predicted <= 0 || c.Predicted > c.OneLevel+c.OneLevel/50 {
			t.Errorf("%+v", c)
		}
		if strings.HasPrefix(c.Algorithm, "two levels") {
			levels++
		}
	}
	if levels == 0 {
		t.Error("64 tasks on 4 hosts use one level")
	}
	for _, c := range Choices(collective.Network{}, 8, 1) {
		if strings.HasPrefix(c.Algorithm, "two levels") || c.Predicted != c.OneLevel {
			t.Errorf("one host: %+v", c)
		}
	}
}
