package fault

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// direction is an ordered pair of ranks. Every fault of frames applies to directions.
type direction struct{ from, to protocol.Rank }

// Pairs selects the directions to which a fault applies. The zero value is all.
type Pairs struct {
	scope scope
	a, b  protocol.Rank
}

type scope int

const (
	everybody scope = iota
	bothWays
	oneWay
)

// Between is both directions between two ranks.
func Between(a, b protocol.Rank) Pairs { return Pairs{bothWays, a, b} }

// OneWay is the direction from one rank to another.
func OneWay(from, to protocol.Rank) Pairs { return Pairs{oneWay, from, to} }

// String returns the words of a script: "" for all, "3 7" or "3->7".
func (p Pairs) String() string {
	switch p.scope {
	case bothWays:
		return fmt.Sprintf("%d %d", p.a, p.b)
	case oneWay:
		return fmt.Sprintf("%d->%d", p.a, p.b)
	}
	return ""
}

// setting is a value for all directions, and exceptions for some. The last set wins.
type setting[T any] struct {
	all  T
	some map[direction]T
}

func (s *setting[T]) set(p Pairs, value T) {
	if p.scope == everybody {
		*s = setting[T]{all: value}
		return
	}
	if s.some == nil {
		s.some = make(map[direction]T)
	}
	s.some[direction{p.a, p.b}] = value
	if p.scope == bothWays {
		s.some[direction{p.b, p.a}] = value
	}
}

func (s *setting[T]) of(d direction) T {
	if value, ok := s.some[d]; ok {
		return value
	}
	return s.all
}
