package fleet

import (
	"bytes"
	"testing"
)

// A request is read as it was written, and damaged ones are refused.
func FuzzRequest(f *testing.F) {
	f.Add((&Request{Zone: "fra", ID: "a", Name: "load", Data: []byte("now")}).encode("iad"))
	f.Add([]byte{200})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, zone, err := decodeRequest(b)
		if err != nil {
			return
		}
		again, to, err := decodeRequest(r.encode(zone))
		if err != nil || to != zone || again.Zone != r.Zone || again.ID != r.ID || again.Name != r.Name ||
			!bytes.Equal(again.Data, r.Data) {
			t.Errorf("%q became %+v, %q, %v", b, again, to, err)
		}
	})
}

// The program's meta and the fleet's word are told apart.
func TestMeta(t *testing.T) {
	for meta, want := range map[string][2]string{
		"": {"", ""}, "a=1": {"a=1", ""}, "backbone=h:1": {"", "h:1"}, "a=1 backbone=h:1": {"a=1", "h:1"},
		"notbackbone=x": {"notbackbone=x", ""},
	} {
		if got := [2]string{ProgramMeta(meta), backboneOf(meta)}; got != want {
			t.Errorf("%q: %q, want %q", meta, got, want)
		}
	}
}
