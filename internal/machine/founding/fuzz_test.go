package founding

import "testing"

// A reply comes from any process that listens at a seed's address.
func FuzzReply(f *testing.F) {
	c := Candidate{ID: "a", Address: "10.0.0.1:7000", Domain: "rack", Nonce: 7, Version: 5}
	for _, r := range []Reply{
		{From: c, Term: 3, Free: true, Others: []string{"10.0.0.2:7000"}},
		{From: c, Member: true, Began: []Candidate{c}},
	} {
		f.Add(r.Encode(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeReply(b)
		if err != nil {
			return
		}
		if !r.Member && !r.From.valid() {
			t.Errorf("a candidate that cannot be a member: %+v", r.From)
		}
		m := New(Config{
			Self: Candidate{ID: "b", Address: "10.0.0.9:7000", Nonce: 9}, Expect: 3,
			Seeds: []string{"10.0.0.1:7000"},
		})
		m.HandleReply(1, "10.0.0.1:7000", &r)
		if len(m.contacts) > maxContacts {
			t.Errorf("%d contacts", len(m.contacts))
		}
	})
}
