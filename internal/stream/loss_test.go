package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A process that has lost what it kept declines requests for what is before an end that it
// knows, and nothing else.
func TestDecline(t *testing.T) {
	end := func(root protocol.Rank, incarnation uint64) uint64 {
		if root == 3 && incarnation == 7 {
			return 20
		}
		return 0
	}
	for _, c := range []struct {
		name  string
		frame frame
		want  bool
	}{
		{"before the end", frame{kind: request, root: 3, incarnation: 7, first: 19, last: 30}, true},
		{"at the end", frame{kind: request, root: 3, incarnation: 7, first: 20, last: 30}, false},
		{"of another incarnation", frame{kind: request, root: 3, incarnation: 8, first: 1, last: 30}, false},
		{"an offer", frame{kind: offer, root: 3, incarnation: 7, first: 1}, false},
	} {
		answer, ok := Decline(c.frame.append(nil), end)
		if ok != c.want {
			t.Errorf("%s: declined %t", c.name, ok)
		}
		if !ok {
			continue
		}
		if got, err := parse(answer); err != nil || got.kind != trimmed || got.root != 3 || got.incarnation != 7 || got.first != 20 {
			t.Errorf("%s: answer %+v, %v", c.name, got, err)
		}
	}
	if _, ok := Decline([]byte{1, 2}, end); ok {
		t.Error("a malformed frame is declined")
	}
}
