package rights

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t *testing.T, text string) (*Rules, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rights")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file)
}

func TestRules(t *testing.T) {
	r, err := load(t, fmt.Sprintf(`# who may do what
token dashboard sha256:%x = read
token ci ci-token-with==signs = read, send
group 4711 = read,files
user 1000 = keys
user root = all
`, sha256.Sum256([]byte("the token of the dashboard"))))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{
		"the token of the dashboard": "dashboard true 2", "ci-token-with==signs": "ci true 6", "": " false 0",
		"ci": " false 0",
		fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("the token of the dashboard"))): " false 0",
	} {
		set, name, ok := r.OfToken(token)
		if got := fmt.Sprint(name, " ", ok, " ", uint8(set)); got != want {
			t.Errorf("%q: got %q, want %q", token, got, want)
		}
	}
	for _, c := range []struct {
		uid    int
		groups []int
		want   Set
	}{
		{1000, []int{1000}, Set(Keys)},
		{1000, []int{1000, 4711}, Set(Keys | Read | Files)},
		{4711, []int{1}, 0},
		{0, nil, All},
	} {
		if got := r.OfUser(c.uid, c.groups); got != c.want {
			t.Errorf("user %d of %v: got %b, want %b", c.uid, c.groups, got, c.want)
		}
	}
	if !r.Local() || (*Rules)(nil).Local() || (*Rules)(nil).OfUser(0, nil) != 0 {
		t.Error("rules that are not there give rights")
	}
}

func TestWrongRules(t *testing.T) {
	for text, want := range map[string]string{
		"token a short = read":                        "shorter than 16 bytes",
		"token a sha256:12 = read":                    "64 hexadecimal digits",
		"token a " + strings.Repeat("x", 20):          "write token NAME",
		"token " + strings.Repeat("x", 20) + "= read": "write token NAME",
		"\n\ngroup 1 = write":                         `line 3: "write" is not a right`,
		"user no-such-user-here = read":               "unknown user",
		"user 1 =":                                    `"" is not a right`,
		"token a " + strings.Repeat("x", 20) + " = read\ntoken a " + strings.Repeat("y", 20) +
			" = read": "another token has the name",
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), strings.Repeat("x", 20)) {
			t.Errorf("the error has a token: %v", err)
		}
	}
	file := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil {
		t.Error("all users can read the file")
	}
}
