package topology_test

import (
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

func TestParseShape(t *testing.T) {
	for s, want := range map[string]topology.Shape{
		"binomial": topology.Binomial(),
		"kary:4":   topology.KAry(4),
		"lame:3":   topology.Lame(3),
		"optimal":  topology.Optimal(2, 1),
	} {
		got, err := topology.ParseShape(s, 2, 1)
		if err != nil || got != want || got.String() != s {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	if (topology.Shape{}) != topology.Binomial() {
		t.Error("the zero shape is not binomial")
	}
}

func TestParseShapeRefuses(t *testing.T) {
	for _, s := range []string{
		"", "tree", "Binomial", "binomial:", "binomial:2", "optimal:1",
		"kary", "kary:", "kary:x", "lame", "lame:2:3", "lame:99999999999999999999",
	} {
		_, err := topology.ParseShape(s, 2, 1)
		if err == nil || !strings.Contains(err.Error(), "choose binomial, kary:K, lame:K or optimal") {
			t.Errorf("%q: got %v", s, err)
		}
	}
	for _, s := range []string{"kary:0", "kary:-3", "lame:0", "lame:1099511627777"} {
		_, err := topology.ParseShape(s, 2, 1)
		if err == nil || !strings.Contains(err.Error(), "choose a number between 1 and 2^40") {
			t.Errorf("%q: got %v", s, err)
		}
	}
	if _, err := topology.ParseShape("optimal", 2, 0); err == nil {
		t.Error("optimal for overhead 0 was accepted")
	}
}

// Every limit holds at its bound, and one beyond it does not, from any root.
func TestLimits(t *testing.T) {
	const limit, slots = 1 << 40, 1 << 22
	for _, c := range []struct {
		shape topology.Shape
		size  protocol.Rank
		valid bool
	}{
		{topology.KAry(limit), 2, true},
		{topology.Optimal(limit, limit), 2, true},
		{topology.Optimal(limit+1, limit), 2, false},
		{topology.Optimal(limit, limit+1), 2, false},
		{topology.Optimal(0, 1), 2, true},
		{topology.Optimal(-1, 1), 2, false},
		{topology.Lame(limit), slots + 1, true}, // one slot for each rank but the root
		{topology.Lame(limit), slots + 2, false},
		{topology.Binomial(), limit, true},
		{topology.Binomial(), limit + 1, false},
	} {
		for root := range protocol.Rank(2) {
			tree, err := topology.New(c.shape, topology.Interleaved, c.size, root)
			if (err == nil) != c.valid || c.valid && tree.Root() != root {
				t.Errorf("%v over %d ranks: %v", c.shape, c.size, err)
			}
		}
	}
}

func TestParseOrder(t *testing.T) {
	for _, order := range orders {
		if got, err := topology.ParseOrder(order.String()); err != nil || got != order {
			t.Errorf("%v: got %v, %v", order, got, err)
		}
	}
	want := `topology: order "random" is unknown: choose interleaved or inorder`
	if _, err := topology.ParseOrder("random"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := topology.Order(7).String(); got != "unknown order" {
		t.Errorf("got %q", got)
	}
}

// FuzzParseShape checks that the name of every accepted shape is accepted again,
// and that the shape makes a tree.
func FuzzParseShape(f *testing.F) {
	for _, s := range []string{"binomial", "kary:4", "lame:3", "optimal", "kary:+07", "lame:", ":"} {
		f.Add(s, int64(2), int64(1))
	}
	f.Fuzz(func(t *testing.T, s string, l, o int64) {
		shape, err := topology.ParseShape(s, protocol.Time(l), protocol.Time(o))
		if err != nil {
			return
		}
		again, err := topology.ParseShape(shape.String(), protocol.Time(l), protocol.Time(o))
		if err != nil || again != shape {
			t.Fatalf("%q is %v, which is %v, %v", s, shape, again, err)
		}
		for _, order := range orders {
			tree, err := topology.New(shape, order, 9, 4)
			if err != nil {
				continue // too fine a unit
			}
			if err := checkTree(tree, 9, 4); err != nil {
				t.Fatalf("%v %v: %v", order, shape, err)
			}
		}
	})
}
