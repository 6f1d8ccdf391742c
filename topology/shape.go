package topology

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// Shape is the form of a tree without its size. It is comparable, so it can be a
// map key and a configuration field. The zero Shape is Binomial().
type Shape struct {
	kind              kind
	k                 int           // of kary and lame
	latency, overhead protocol.Time // of optimal
}

// kind is the family of a shape.
type kind uint8

const (
	binomial kind = iota
	kary
	lame
	optimal
)

// Binomial returns the tree in which every process that has the message sends in
// every round and a message takes one round (Corrected Trees §3.2.2).
func Binomial() Shape { return Shape{kind: binomial} }

// KAry returns the balanced tree in which every process has up to k children
// (Corrected Trees §3.2.1).
func KAry(k int) Shape { return Shape{kind: kary, k: k} }

// Lame returns the Lamé tree of order k: every process that has the message
// sends in every round and a message takes k rounds (Corrected Trees §3.2.2).
// Order 1 is binomial; order L+2 is optimal where o = 1.
func Lame(k int) Shape { return Shape{kind: lame, k: k} }

// Optimal returns the tree that finishes first in the LogP model with latency l
// and overhead o (Corrected Trees §3.2.3).
func Optimal(l, o protocol.Time) Shape { return Shape{kind: optimal, latency: l, overhead: o} }

// String returns the name that [ParseShape] accepts.
func (s Shape) String() string {
	switch s.kind {
	case kary:
		return "kary:" + strconv.Itoa(s.k)
	case lame:
		return "lame:" + strconv.Itoa(s.k)
	case optimal:
		return "optimal"
	default:
		return "binomial"
	}
}

// ParseShape parses binomial, kary:K, lame:K or optimal. An optimal tree is built
// for latency l and overhead o; the other shapes ignore them.
func ParseShape(s string, l, o protocol.Time) (Shape, error) {
	var shape Shape
	name, arg, hasArg := strings.Cut(s, ":")
	k, err := strconv.Atoi(arg)
	switch {
	case s == "binomial":
		shape = Binomial()
	case s == "optimal":
		shape = Optimal(l, o)
	case name == "kary" && hasArg && err == nil:
		shape = KAry(k)
	case name == "lame" && hasArg && err == nil:
		shape = Lame(k)
	default:
		return Shape{}, fmt.Errorf(
			"topology: tree %q is unknown: choose binomial, kary:K, lame:K or optimal, with a number K of at least 1", s)
	}
	if err := shape.check(); err != nil {
		return Shape{}, err
	}
	return shape, nil
}

// check returns an error if the shape's parameters are out of range.
func (s Shape) check() error {
	switch {
	case (s.kind == kary || s.kind == lame) && (s.k < 1 || int64(s.k) > limit):
		return fmt.Errorf("topology: %s: choose a number between 1 and 2^40", s)
	case s.kind == optimal && (s.overhead < 1 || s.overhead > limit):
		return fmt.Errorf("topology: optimal tree for overhead %d: choose an overhead between 1 and 2^40", s.overhead)
	case s.kind == optimal && (s.latency < 0 || s.latency > limit):
		return fmt.Errorf("topology: optimal tree for latency %d: choose a latency between 0 and 2^40", s.latency)
	default:
		return nil
	}
}

// rhythm returns the time from one send of a process to its next, and the time
// from the start of a send until its receiver can send, in the largest unit in
// which both are whole. Binomial, Lamé and optimal trees differ only in these two.
func (s Shape) rhythm() (step, delay protocol.Time) {
	switch s.kind {
	case lame:
		return 1, protocol.Time(s.k)
	case optimal:
		step, delay = s.overhead, 2*s.overhead+s.latency
		unit := gcd(step, delay)
		return step / unit, delay / unit
	default:
		return 1, 1
	}
}

func gcd(a, b protocol.Time) protocol.Time {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
