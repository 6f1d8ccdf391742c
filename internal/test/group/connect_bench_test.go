package group_test

import (
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// BenchmarkJoin is the time that Join takes in a group of three on loopback.
func BenchmarkJoin(b *testing.B) {
	ca := testutil.NewCA(b)
	for name, c := range map[string]pleach.Config{
		"plain":  {},
		"tls":    {Security: pleach.Security{TLS: ca.Config(b, ca)}},
		"secret": {Security: pleach.Security{Secret: []byte("0123456789abcdef")}},
	} {
		b.Run(name, func(b *testing.B) {
			first, err := pleach.Create(b.Context(), c)
			if err != nil {
				b.Fatal(err)
			}
			defer first.Abort()
			seed := first.Self().Address
			second, err := pleach.Join(b.Context(), c, seed)
			if err != nil {
				b.Fatal(err)
			}
			defer second.Abort()
			for b.Loop() {
				g, err := pleach.Join(b.Context(), c, seed)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := g.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
