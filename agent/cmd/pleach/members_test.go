package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

func TestViewChange(t *testing.T) {
	a, b := pleach.Member{Rank: 0, ID: "a", Incarnation: 1}, pleach.Member{Rank: 2, ID: "b", Incarnation: 2}
	back := pleach.Member{Rank: 2, ID: "b", Incarnation: 3}
	evil := pleach.Member{Rank: 1, ID: "\x1b[2J"}
	view := func(number uint64, members ...pleach.Member) pleach.View {
		return pleach.NewView(number, 3, members...)
	}
	for _, c := range []struct {
		before, now pleach.View
		want        string
	}{
		{view(1, a, b), view(2, a), "view 2: 1 member, 2 holes -2 (b)"},
		{view(2, a), view(3, a, b), "view 3: 2 members, 1 hole +2 (b)"},
		{view(3, a, b), view(5, a, back), "view 5: 2 members, 1 hole +2 (b)"},
		{view(1, a, b), view(2, a, evil), `view 2: 2 members, 1 hole -2 (b) +1 ("\x1b[2J")`},
	} {
		if got := viewChange(c.before, c.now); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := holes(view(1, b)); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("holes %v", got)
	}
}

// Rows are 32 ranks long, as those of pleach-lab tree.
func TestViewTableRing(t *testing.T) {
	text := viewTable(pleach.NewView(1, 33, pleach.Member{Rank: 0}, pleach.Member{Rank: 32}))
	_, ring, _ := strings.Cut(text, "\n\nring\n")
	rows := strings.Split(ring, "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "    0  ● ○") || rows[1] != "   32  ●" {
		t.Errorf("%q", rows)
	}
}

// A look at a group that uses TLS takes a certificate of its authority.
func TestMembersTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "me.pem"), filepath.Join(dir, "me.key")
	writeCertificate(t, certificate, key)
	flags := groupFlags{group: "secret", ca: certificate, cert: certificate, key: key}
	c, err := flags.config()
	if err != nil {
		t.Fatal(err)
	}
	founder, err := pleach.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer founder.Close()
	address := founder.View().Leader().Address
	out := printed(t, "members", address, "--group", "secret", "--tls-ca", certificate, "--tls-cert", certificate,
		"--tls-key", key)
	if !strings.HasPrefix(out, "view 1: 1 member\n") {
		t.Error(out)
	}
	if _, err := look(t.Context(), pleach.Config{Group: "secret"}, []string{address}); err == nil {
		t.Error("a stranger may look")
	}
}

// writeCertificate writes a member's certificate, followed by that of its CA, and
// its key.
func writeCertificate(t *testing.T, certificate, key string) {
	t.Helper()
	c := testutil.NewCA(t).Issue(t)
	for file, b := range map[string][]byte{certificate: append(c.Cert, c.CA...), key: c.Key} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Others are told all flags that they need, and errors name flags instead of fields.
func TestFlagsInTexts(t *testing.T) {
	g := groupFlags{group: "orders", secret: "secret.txt", ca: "ca.pem"}
	if text := g.arguments(); text !=
		" --group orders --secret-file secret.txt --tls-ca FILE --tls-cert FILE --tls-key FILE" {
		t.Errorf("%q", text)
	}
	if text := new(groupFlags).arguments(); text != "" {
		t.Errorf("%q without flags", text)
	}
	_, err := pleach.Create(t.Context(), pleach.Config{Security: pleach.Security{Secret: []byte("short")}})
	if text := cli.ShellText(err); !strings.Contains(text, "--secret-file is shorter") {
		t.Errorf("%q", text)
	}
}

// A view in which the quorum is back says so.
func TestRegainedQuorumIsTold(t *testing.T) {
	now := pleach.NewView(3, 1, pleach.Member{})
	before := now
	before.Err = &pleach.QuorumError{Reachable: 1, Members: 3, Needed: 2}
	if text := viewChange(before, now); text != "view 3: 1 member; quorum regained" {
		t.Errorf("%q", text)
	}
	if text := viewChange(now, now); text != "view 3: 1 member" {
		t.Errorf("%q", text)
	}
}
