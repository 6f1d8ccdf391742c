package draw

import (
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/topology"
)

// Colors come on top: without them the text is the same.
func TestTextColors(t *testing.T) {
	c := color(t, topology.Binomial(), topology.Interleaved, 40, 1)
	var plain, colored strings.Builder
	if err := errors.Join(Text(&plain, c, false), Text(&colored, c, true)); err != nil {
		t.Fatal(err)
	}
	for _, sign := range []string{"\x1b[34m●\x1b[0m 0", "\x1b[31m✗\x1b[0m 1", "\x1b[33m○\x1b[0m 3"} {
		if !strings.Contains(colored.String(), sign) {
			t.Errorf("no %q in %q", sign, colored.String())
		}
	}
	stripped := strings.NewReplacer("\x1b[34m", "", "\x1b[31m", "", "\x1b[33m", "", "\x1b[0m",
		"").Replace(colored.String())
	if stripped != plain.String() {
		t.Errorf("without colors\n%s\nwant\n%s", stripped, plain.String())
	}
}
