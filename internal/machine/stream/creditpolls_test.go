package stream_test

import (
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// A member that is polled for credits more often than the members below answer passes few
// of the polls on. Otherwise a slow group has more polls than it can answer.
func TestCreditPollsFollowTheirAnswers(t *testing.T) {
	const (
		creditFrame, creditPollFrame = 9, 10

		millisecond protocol.Time = 1e6
		polled                    = 10 * millisecond  // how often rank 1 is polled
		took                      = 500 * millisecond // how long an answer of rank 3, below it, takes
		end                       = 20_000 * millisecond
	)
	raw := func(kind byte, first uint64) []byte { // without messages, but with a view
		return append(rawFrame(kind, first, "")[:22], make([]byte, 8)...)
	}
	p := newPeer(t, stream.Config{Rank: 1, Size: 4, Incarnation: 1})
	passedOn := 0
	var answers []protocol.Time
	for ; p.now < end; p.now += polled {
		p.receive(0, raw(creditPollFrame, 1))
		for len(answers) > 0 && answers[0] <= p.now {
			p.receive(3, raw(creditFrame, 0))
			answers = answers[1:]
		}
		for _, frame := range frames(p.Member, p.now)[3] {
			if frame[0] == creditPollFrame {
				passedOn++
				answers = append(answers, p.now+took)
			}
		}
	}
	if least, most := int(end/took/4), int(2*end/took); passedOn < least || passedOn > most {
		t.Errorf("%d of %d polls were passed on, want %d to %d", passedOn, end/polled, least, most)
	}
}
