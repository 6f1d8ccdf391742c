package pleach

import (
	"errors"
	"testing"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/wire"
)

// What is promised is what holds.
func TestLimitsOfHeaders(t *testing.T) {
	if MaxHeaderBytes != header.MaxBytes || MaxHeaderKeys != header.MaxKeys || HeaderVersion != wire.HeaderVersion {
		t.Error("the documented limits are not those that are checked")
	}
}

// In a group of a protocol version without headers, a call with one returns a VersionError, and one
// without is as ever.
func TestHeadersNeedTheirVersion(t *testing.T) {
	g, err := Create(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	s := g.session()
	v := *s.view.Load()
	v.Version = HeaderVersion - 1
	s.view.Store(&v)
	ctx := WithHeader(t.Context(), Header{"a": "1"})
	_, asked := g.Request(ctx, g.Self(), "any", nil)
	for call, err := range map[string]error{
		"Broadcast": g.Broadcast(ctx, nil), "Send": g.Send(ctx, g.Self(), nil), "Request": asked,
	} {
		if e := new(VersionError); !errors.As(err, &e) || e.Group != HeaderVersion-1 || e.Min != HeaderVersion {
			t.Errorf("%s: %v", call, err)
		}
	}
	if err := g.Broadcast(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A context without a header costs a message no allocation.
func TestNoHeaderCostsNothing(t *testing.T) {
	g, err := Create(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	s := g.session()
	if n := testing.AllocsPerRun(100, func() { _, _ = headerOf(t.Context(), s.view.Load()) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
