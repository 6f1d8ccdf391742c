package reproduce

import (
	"bytes"
	"encoding/xml"
	"testing"
)

// Every experiment is measured, drawn and judged, at its smallest size.
func TestEveryExperiment(t *testing.T) {
	data := map[*Source]Data{}
	claims := 0
	for _, e := range Catalog() {
		if data[e.Source] == nil {
			d, err := e.Source.Measure(t.Context(), Options{Size: Tiny})
			if err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			data[e.Source] = d
		}
		for _, c := range e.Claims(data[e.Source]) {
			claims++
			if c.Claim == "" || c.Stated == "" || c.Measured == "" || c.Verdict == "" {
				t.Errorf("%s: incomplete claim %+v", e.Name, c)
			}
		}
		for _, c := range e.Charts(data[e.Source]) {
			var svg bytes.Buffer
			if err := c.SVG(&svg); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
			if err := xml.Unmarshal(svg.Bytes(), new(struct{})); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
	if claims < 60 {
		t.Errorf("%d claims", claims)
	}
}
