package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A client copies a file to the agents that take files, and learns which do not. Subscribers
// see nothing of it.
func TestCopy(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 3)
	dirs := []string{t.TempDir(), t.TempDir(), ""}
	var agents []*testAgent
	for i, address := range addresses {
		text := fmt.Sprintf("listen: %s\nid: %c\nseeds: [%s]\nexpect: 3\n", address, 'a'+i, strings.Join(addresses, ", "))
		if dirs[i] != "" {
			text += "file-dirs: [" + dirs[i] + "]\n"
		}
		a, joined := begin(t, text)
		defer func() { <-joined }()
		agents = append(agents, a)
	}
	testutil.Eventually(t, "a group of three", func() bool {
		m, err := agents[0].Members(t.Context())
		return err == nil && len(m.Members) == 3
	})
	events, cut := agents[1].subscribe(t, client.Subscription{})
	defer cut()
	content := strings.Repeat("0123456789abcdef", 200_000)
	upload := api.Upload{Dir: "images", Name: "new.img", Mode: 0o600, Content: strings.NewReader(content)}
	r, err := agents[0].Copy(t.Context(), upload, func(transfer.Progress) {})
	if err != nil || r.Count(transfer.Done) != 2 || r.Count(transfer.Failed) != 1 || r.Size != int64(len(content)) {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, dir := range dirs[:2] {
		if b, err := os.ReadFile(filepath.Join(dir, "images", "new.img")); err != nil || string(b) != content {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s has %v", dir, entries)
		}
	}
	for _, m := range r.Members {
		if m.ID == "c" && (m.Outcome != transfer.Failed || !strings.Contains(m.Error, "takes no files")) {
			t.Errorf("%+v", m)
		}
	}
	if _, err := agents[0].Broadcast(t.Context(), transfer.Topic, []byte("x"), false, 0); err == nil {
		t.Error("a program broadcasts to the topic of copies")
	}
	if _, err := agents[0].Broadcast(t.Context(), "after", nil, false, 0); err != nil {
		t.Fatal(err)
	}
	if e := next(t, events); e.Message == nil || e.Message.Topic != "after" {
		t.Errorf("got %+v", e)
	}
	upload.Name = "../x"
	if _, err := agents[0].Copy(t.Context(), upload, func(transfer.Progress) {}); err == nil {
		t.Error("a name with a folder passes")
	}
}
