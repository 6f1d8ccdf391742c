package pleach

import "testing"

// A process that has joined answers with the decision that has admitted it, and a request
// to catch up is checked.
func TestJoinerAnswersWithDecisions(t *testing.T) {
	first, err := Create(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Abort() }()
	joiner, err := Join(t.Context(), Config{}, first.self.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = joiner.Abort() }()
	d, err := first.fetchDecisions(joiner.self.Address)
	if err != nil || len(d.Encode(nil)) <= 4 {
		t.Errorf("decisions %v, %v", d, err)
	}
	if reply := first.answerCatchUp([]byte{1}); reply[0] == replyAccepted {
		t.Error("a malformed request is accepted")
	}
}
