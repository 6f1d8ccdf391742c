package faults

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Case 12: a process's own address comes first among its seeds. It is skipped.
func TestCase12OwnAddressAmongSeeds(t *testing.T) {
	addresses := testutil.FreeAddresses(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "faults", Listen: addresses[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Abort()
	began := time.Now()
	second, err := pleach.Join(ctx, pleach.Config{Group: "faults", Listen: addresses[1]}, addresses[1], addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer second.Abort()
	figures(t, map[string]any{"case": 12, "joined_ms": time.Since(began).Milliseconds()})
}

// Case 13: an address that others cannot dial is refused, unless Advertise says another.
func TestCase13AddressThatCannotBeDialed(t *testing.T) {
	for _, listen := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		g, err := pleach.Create(t.Context(), pleach.Config{Group: "faults", Listen: listen})
		var refused *pleach.ConfigError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", listen, err)
		}
		if err == nil {
			_ = g.Abort()
		}
	}
	advertise := testutil.FreeAddresses(t, 1)[0]
	g, err := pleach.Create(t.Context(), pleach.Config{Group: "faults", Listen: "0.0.0.0:0", Advertise: advertise})
	if err != nil || g.Self().Address != advertise {
		t.Fatalf("%v", err)
	}
	_ = g.Abort()
	figures(t, map[string]any{"case": 13, "refused": 3})
}

// What a DataDir costs a view change: members join and leave, with one and without.
func TestCase11CostOfDataDir(t *testing.T) {
	took := map[string]int64{}
	for _, name := range []string{"without", "with"} {
		config := func() pleach.Config {
			c := pleach.Config{Group: "faults", Listen: testutil.FreeAddresses(t, 1)[0]}
			if name == "with" {
				c.Recovery.DataDir = t.TempDir()
			}
			return c
		}
		first, err := pleach.Create(t.Context(), config())
		if err != nil {
			t.Fatal(err)
		}
		const changes = 20
		began := time.Now()
		for range changes / 2 {
			g, err := pleach.Join(t.Context(), config(), first.Self().Address)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		took[name] = time.Since(began).Microseconds() / changes
		_ = first.Abort()
	}
	figures(t, map[string]any{"case": 11, "change_us_without": took["without"], "change_us_with": took["with"]})
}
