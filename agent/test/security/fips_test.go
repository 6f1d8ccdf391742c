package security

import (
	"crypto/fips140"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// inFIPS is set in the process that a test starts in this mode.
const inFIPS = "PLEACH_TEST_FIPS"

// Members with TLS and a secret work with Go's FIPS 140-3 module, and need no algorithm that it has
// not approved.
func TestSecurityFIPS(t *testing.T) {
	if os.Getenv(inFIPS) != "" {
		exchangeInFIPS(t)
		return
	}
	for _, mode := range []string{"on", "only"} {
		t.Run(mode, func(t *testing.T) {
			self := exec.CommandContext(timed(t, time.Minute), os.Args[0], "-test.run=^TestSecurityFIPS$", "-test.v")
			self.Env = append(os.Environ(), inFIPS+"=1", "GODEBUG=fips140="+mode)
			if out, err := self.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSecurityFIPS") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// exchangeInFIPS has two members exchange a message.
func exchangeInFIPS(t *testing.T) {
	if !fips140.Enabled() {
		t.Fatal("the mode is not on")
	}
	ca := testutil.NewCA(t)
	member := func(id string) pleach.Config {
		return pleach.Config{ID: id, Security: pleach.Security{
			TLS:    uriTLS(t, ca, "pleach/web/"+id),
			Secret: []byte("the group's secret"),
		}}
	}
	a := create(t, member("a"))
	b := join(t, member("b"), a.Self().Address)
	ctx := timed(t, 20*time.Second)
	if err := a.Broadcast(ctx, []byte("approved")); err != nil {
		t.Fatal(err)
	}
	for m := range b.Messages(ctx) {
		if string(m.Data) != "approved" {
			t.Errorf("%q", m.Data)
		}
		return
	}
	t.Errorf("no message: %v", b.Err())
}
