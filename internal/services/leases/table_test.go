package leases

import (
	"bytes"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is proposed, and in whichever order: a lease changes hands only by a command that
// knows its token and how often it was renewed; only its holder renews and releases it; and every
// holder has a higher token than all before. A table that was restored goes on alike.
func TestTableLikeARule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := prepared(New())
		last := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			c := Command{
				Op: Operation(rapid.IntRange(0, 4).Draw(t, "op")), Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
				Entry: Entry{Token: rapid.Uint64Range(0, last).Draw(t, "token"), Renewals: rapid.Uint64Range(0, 2).Draw(t,
					"renewals"), TTL: 1e9, Holder: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "holder")},
				Floor: 1, Expired: rapid.Bool().Draw(t, "expired"),
			}
			before, held := table.leases[c.Name]
			result, changed := table.Apply(0, c.Encode())
			verdict, token := DecodeResult(result)
			after, holds := table.leases[c.Name]
			known := held && c.Token == before.Token
			fresh := known && c.Renewals == before.Renewals
			ok := c.Op == Acquire && (!held || fresh) || c.Op == Renew && known || c.Op == Release && known &&
				(fresh || !c.Expired)
			if (verdict == OK) != ok || token != after.Token {
				t.Fatalf("%+v of %+v (%v): verdict %d, token %d", c, before, held, verdict, token)
			}
			if changed != ok {
				t.Fatalf("%+v is told: %v", c, changed)
			}
			want := before
			switch {
			case ok && c.Op == Acquire:
				want = Entry{Token: last + 1, TTL: c.TTL, Holder: c.Holder}
				last++
			case ok && c.Op == Renew:
				want.Renewals++
			case ok:
				want = Entry{}
			}
			if after != want || holds != (want != Entry{}) {
				t.Fatalf("%+v of %+v: %+v, want %+v", c, before, after, want)
			}
			if rapid.IntRange(0, 5).Draw(t, "restore") == 0 {
				var b bytes.Buffer
				if err := table.Snapshot(&b); err != nil {
					t.Fatal(err)
				}
				restored := New()
				if err := restored.Restore(0, &b); err != nil || !maps.Equal(restored.leases, table.leases) ||
					len(restored.seen) != len(table.leases) {
					t.Fatalf("%v, %v", restored.leases, err)
				}
				table = restored
			}
		}
	})
	if result, changed := New().Apply(0, []byte{1}); changed || result[0] != byte(No) {
		t.Errorf("half a command: %v", result)
	}
}
