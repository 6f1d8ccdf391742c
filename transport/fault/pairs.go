package fault

import (
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// direction is one way between two ranks. Every fault of frames is decided by it.
type direction struct{ from, to protocol.Rank }

// Pairs says between whom a fault happens. Its zero value is everybody.
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

// OneWay is only what one rank sends to another.
func OneWay(from, to protocol.Rank) Pairs { return Pairs{oneWay, from, to} }

// String returns what a script says: nothing for everybody, "3 7" or "3->7".
func (p Pairs) String() string {
	switch p.scope {
	case bothWays:
		return fmt.Sprintf("%d %d", p.a, p.b)
	case oneWay:
		return fmt.Sprintf("%d->%d", p.a, p.b)
	}
	return ""
}

// setting is a value for everybody, and others for some directions. What was set
// last holds.
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
