package bench

import (
	"encoding/json"
	"io"
)

// WriteResults writes results as JSON.
func WriteResults[R any](w io.Writer, results []R) error {
	return json.NewEncoder(w).Encode(struct {
		Results []R `json:"results"`
	}{results})
}
