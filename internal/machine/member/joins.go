package member

import (
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// joins are the candidates that wait for an answer.
type joins struct {
	last    uint64 // token
	waiting map[uint64]func(JoinAnswer)
}

// JoinAnswer is the answer to a candidate: the view that it is in, its rank there, its
// position in every stream, and the decisions that have led to the view. If Err is not nil, the candidate is refused.
type JoinAnswer struct {
	View      membership.View
	Rank      protocol.Rank
	Start     []membership.Position
	Decisions membership.Decisions
	Err       error
}

// Join asks the group for a view with a candidate. If replace is set, the candidate
// takes the place of a live member with its identity. Settle calls answer when that is
// decided.
func (m *Machine) Join(now protocol.Time, candidate membership.Member, replace bool, answer func(JoinAnswer)) {
	m.enter(now)
	if m.joins.waiting == nil {
		m.joins.waiting = make(map[uint64]func(JoinAnswer))
	}
	m.joins.last++
	m.joins.waiting[m.joins.last] = answer
	m.views.Join(now, m.joins.last, candidate, replace)
}

// answerJoins answers the candidates that a view change has decided about.
func (m *Machine) answerJoins() {
	for {
		a, ok := m.views.Answers()
		if !ok {
			return
		}
		answer := m.joins.waiting[a.Token]
		delete(m.joins.waiting, a.Token)
		switch {
		case answer == nil:
		case a.Err != nil:
			answer(JoinAnswer{Err: a.Err})
		default:
			answer(JoinAnswer{View: a.View, Rank: a.Rank, Start: m.Positions(), Decisions: a.Decisions})
		}
	}
}
