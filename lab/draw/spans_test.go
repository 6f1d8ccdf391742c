package draw

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The picture of docs/operate/monitor.md is drawn from a trace that was recorded. make trace-picture
// records another one and draws it.
func TestTracePictureIsDrawnFromItsRecord(t *testing.T) {
	const picture = "../../docs/pictures/trace.svg"
	record, err := os.ReadFile("testdata/trace.json")
	if err != nil {
		t.Fatal(err)
	}
	spans, err := ReadSpans(bytes.NewReader(record))
	if err != nil {
		t.Fatal(err)
	}
	var svg bytes.Buffer
	if err := spans.Write(&svg, "One trace of a broadcast to 8 members",
		"8 members over TCP in one process on two cores. Lines lead from the sender's span to the receivers'."); err != nil {
		t.Fatal(err)
	}
	if testutil.UpdateGolden.On() {
		if err := os.WriteFile(picture, svg.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(picture); err != nil || !bytes.Equal(drawn, svg.Bytes()) {
		t.Errorf("%s is not drawn from its record: make trace-picture (%v)", picture, err)
	}
	text := svg.String()
	parse(t, &svg).checkLabels(t)
	for sign, want := range map[string]int{
		`<rect class="dissemination"`: 1 + 1, // in the legend too
		`<rect class="correction"`:    7 + 1,
		`flight"`:                     7,
	} {
		if got := strings.Count(text, sign); got != want {
			t.Errorf("%d times %s, want %d", got, sign, want)
		}
	}
}

// A file that is no trace, or lacks the parent of a span, is refused.
func TestReadSpansRefuses(t *testing.T) {
	one := `{"Name":"a","SpanContext":{"SpanID":"1"},"Parent":{"SpanID":"%s"}}`
	for _, text := range []string{
		"", "{", fmt.Sprintf(one, "2"), strings.Repeat(fmt.Sprintf(one, "0000000000000000"), MaxSpans+1),
	} {
		if _, err := ReadSpans(strings.NewReader(text)); err == nil {
			t.Errorf("%.50s is read", text)
		}
	}
}
