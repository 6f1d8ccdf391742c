package fleet_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A message arrives with its header in its own zone and in others, and one without has none.
func TestFleetHeaders(t *testing.T) {
	t.Parallel()
	members := start(t, map[string]int{"ams": 2, "ber": 2})
	connected(t, members)
	sender := members["ams"][1]
	want := pleach.Header{"traceparent": "00-1-2-01", "empty": ""}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	with := pleach.WithHeader(ctx, want)
	testutil.Eventually(t, "all zones are known to speak the version", func() bool {
		err := sender.Broadcast(with, []byte("with"))
		if err != nil && !errors.As(err, new(*pleach.VersionError)) {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := sender.Broadcast(ctx, []byte("without")); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(members["ber"], members["ams"][0]) {
		for m, err := range f.Messages(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Data) == "without" {
				if m.Header != nil {
					t.Errorf("header %v", m.Header)
				}
				break
			}
			if string(m.Data) != "with" || !maps.Equal(m.Header, want) {
				t.Errorf("%q with header %v", m.Data, m.Header)
			}
		}
	}
	var flaw *pleach.HeaderError
	if err := sender.Broadcast(pleach.WithHeader(ctx, pleach.Header{"Upper": ""}), nil); !errors.As(err, &flaw) ||
		flaw.Key != "Upper" {
		t.Errorf("%v", err)
	}
	long := pleach.Header{"long": strings.Repeat("x", pleach.MaxHeaderBytes)}
	if err := sender.Broadcast(pleach.WithHeader(ctx, long), nil); !errors.As(err, &flaw) {
		t.Errorf("%v", err)
	}
}
