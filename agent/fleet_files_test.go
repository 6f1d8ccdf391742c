package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A file crosses to the members of another zone, in several parts, and the client learns which
// member of which zone takes none.
func TestCopyToFleet(t *testing.T) {
	zones := []string{"fra", "iad"}
	addresses := testutil.FreeAddresses(t, 4)
	var agents []*testAgent
	var dirs []string
	for i, address := range addresses {
		of := addresses[i/2*2 : i/2*2+2]
		text := fmt.Sprintf(
			"group: shop\nlisten: %s\nid: %c\nzone: %s\nseeds: [%s]\nexpect: 2\nzones: {fra: [%s], iad: [%s]}\n",
			address, 'a'+i, zones[i/2], strings.Join(of, ", "), strings.Join(addresses[:2], ", "),
			strings.Join(addresses[2:], ", "))
		if i < 3 {
			dirs = append(dirs, t.TempDir())
			text += "file-dirs: [" + dirs[i] + "]\n"
		}
		a, joined := begin(t, text)
		defer func() { <-joined }()
		agents = append(agents, a)
	}
	testutil.Eventually(t, "a fleet of two zones", func() bool {
		f, err := agents[1].Fleet(t.Context())
		return err == nil && len(f.Zones) == 2 && len(f.Zones[0].Links) == 1 && len(f.Zones[1].Links) == 1
	})
	content := strings.Repeat("0123456789abcdef", 3*partBytes/16) + "end"
	upload := func() api.Upload {
		return api.Upload{Dir: "images", Name: "new.img", Mode: 0o600, Fleet: true, Content: strings.NewReader(content)}
	}
	for _, want := range []transfer.Outcome{transfer.Done, transfer.Present} {
		r, err := agents[1].Copy(t.Context(), upload(), func(transfer.Progress) {})
		if err != nil || r.Count(want) != 3 || len(r.FailedZones) != 0 || len(r.Members) != 4 ||
			r.Size != int64(len(content)) {
			t.Fatalf("%+v, %v", r, err)
		}
		if m := r.Members[3]; m.Zone != "iad" || m.ID != "d" || m.Outcome != transfer.Failed ||
			!strings.Contains(m.Error, "takes no files") {
			t.Errorf("%+v", m)
		}
	}
	for _, dir := range dirs {
		if b, err := os.ReadFile(filepath.Join(dir, "images", "new.img")); err != nil || string(b) != content {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
}

// A part that does not fit its file is refused, whatever its bytes.
func FuzzPart(f *testing.F) {
	header, _ := json.Marshal(zonePart{ID: "x", Size: 3})
	f.Add(append(append([]byte{byte(len(header))}, header...), "abc"...))
	f.Fuzz(func(t *testing.T, frame []byte) {
		part, data, err := openPart(frame)
		if err == nil && (part.Offset < 0 || part.Offset+int64(len(data)) > part.Size) {
			t.Errorf("%+v with %d bytes", part, len(data))
		}
	})
}
