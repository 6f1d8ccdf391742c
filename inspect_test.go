package pleach

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/machine/control"
)

// A process tells which calls it is in. A member that is in no World refuses.
func TestTellWork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	w, err := NewWorld(t.Context(), Config{Group: "alone", Addresses: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := collective.Barrier(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	b := w.group.session().encodeProgress()
	var worlds []collective.Progress
	if b[0] != byte(control.Accepted) || json.Unmarshal(b[1:], &worlds) != nil || len(worlds) != 1 {
		t.Fatalf("%q", b)
	}
	if p := worlds[0]; p.Calls != 1 || p.Last == nil || p.Last.Name != "Barrier" || len(p.Current) != 0 || len(p.Tasks) != 1 {
		t.Errorf("%+v", p)
	}
	g, err := Create(t.Context(), Config{Group: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if b := g.session().encodeProgress(); b[0] != byte(control.Refused) || !strings.Contains(string(b), "not in a World") {
		t.Errorf("%q", b)
	}
}
