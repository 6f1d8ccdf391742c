package otel

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/pleach-go/pleach"
)

// traced is a context with a span of another process.
func traced(t *testing.T) (context.Context, trace.SpanContext) {
	t.Helper()
	s := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
	})
	return trace.ContextWithSpanContext(t.Context(), s), s
}

func setPropagator(t *testing.T, p propagation.TextMapPropagator) {
	t.Helper()
	before := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(p)
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
}

// A request carries the trace to its handler.
func TestRequestsAreTraced(t *testing.T) {
	setPropagator(t, propagation.TraceContext{})
	g, err := pleach.Create(t.Context(), pleach.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	var got trace.SpanContext
	g.Handle("ask", Handler(func(ctx context.Context, _ pleach.Request) ([]byte, error) {
		got = trace.SpanContextFromContext(ctx)
		return nil, nil
	}))
	ctx, want := traced(t)
	if _, err := g.Request(Inject(ctx, g.View()), g.Self(), "ask", nil); err != nil || !got.Equal(want) {
		t.Errorf("%v, %+v, want %+v", err, got, want)
	}
}

// In a group that has no headers yet, and with no propagator, the context stays as it is.
func TestNothingToCarry(t *testing.T) {
	ctx, _ := traced(t)
	setPropagator(t, propagation.TraceContext{})
	if Inject(ctx, pleach.View{Version: pleach.HeaderVersion - 1}) != ctx {
		t.Error("a trace is carried in a group without headers")
	}
	if Inject(t.Context(), pleach.View{Version: pleach.HeaderVersion}) != t.Context() {
		t.Error("a header without a trace")
	}
	setPropagator(t, propagation.NewCompositeTextMapPropagator())
	if Inject(ctx, pleach.View{Version: pleach.HeaderVersion}) != ctx {
		t.Error("a trace is carried without a propagator")
	}
}

// Keys have no case, and what cannot be a header is left out: long baggage, and not the trace.
func TestWhatAHeaderCannotHave(t *testing.T) {
	g, err := pleach.Create(t.Context(), pleach.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	receive := func(ctx context.Context) pleach.Header {
		t.Helper()
		if err := g.Send(Inject(ctx, g.View()), g.Self(), nil); err != nil {
			t.Fatal(err)
		}
		for m, err := range g.Messages(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			return m.Header
		}
		t.Fatal(errors.New("no message"))
		return nil
	}
	setPropagator(t, propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	ctx, want := traced(t)
	member, err := baggage.NewMember("long", strings.Repeat("x", pleach.MaxHeaderBytes))
	if err != nil {
		t.Fatal(err)
	}
	long, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	h := receive(baggage.ContextWithBaggage(ctx, long))
	if got := trace.SpanContextFromContext(Extract(t.Context(), h)); len(h) != 1 || !got.Equal(want) {
		t.Errorf("header %v, and span %+v, want %+v", h, got, want)
	}
	full := pleach.WithHeader(ctx, pleach.Header{"own": strings.Repeat("x", pleach.MaxHeaderBytes-3-len("own"))})
	if h := receive(full); len(h) != 1 || h["own"] == "" {
		t.Errorf("a full header has become %v", h)
	}
	upper := make(pairs) // as the propagator of AWS X-Ray writes it
	upper.Set("X-Amzn-Trace-Id", "Root=1")
	upper.Set("no key!", "longer than the other one")
	upper.shrink(nil)
	if got := upper.Get("X-AMZN-Trace-Id"); got != "Root=1" || len(upper.Keys()) != 1 {
		t.Errorf("%v", upper)
	}
}
