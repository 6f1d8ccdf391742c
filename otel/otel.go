// Package otel carries the context of OpenTelemetry's traces in the headers of Pleach's messages, so
// that one trace has the sender of a message and all of its receivers.
//
//	ctx, span := tracer.Start(ctx, "flush")
//	err := group.Broadcast(otel.Inject(ctx, group.View()), data)
//
// and at each receiver:
//
//	for m, err := range group.Messages(ctx) {
//		ctx, span := tracer.Start(otel.Extract(ctx, m.Header), "flush")
//
// It uses the program's propagator, which OpenTelemetry's SetTextMapPropagator sets. Without one,
// nothing is carried. The package needs only the API of OpenTelemetry: the program chooses the SDK.
package otel

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel"

	"github.com/pleach-go/pleach"
)

// Inject returns a context whose messages and requests carry the trace of ctx, in addition to the
// header that ctx has. View is a view of the group that they are sent in.
//
// A trace never fails a message: in a group whose protocol version is too low for headers
// ([pleach.HeaderVersion]), Inject returns ctx. Of what the propagator writes it leaves out pairs that
// are not allowed, and the longest ones if the header would be too large.
func Inject(ctx context.Context, view pleach.View) context.Context {
	if view.Version < pleach.HeaderVersion {
		return ctx
	}
	h := make(pairs)
	otel.GetTextMapPropagator().Inject(ctx, h)
	h.shrink(pleach.HeaderOf(ctx))
	if len(h) == 0 {
		return ctx
	}
	return pleach.WithHeader(ctx, pleach.Header(h))
}

// Extract returns a context with the trace of a message, or of a request, by its header. Spans that
// are started with it are children of the sender's.
func Extract(ctx context.Context, h pleach.Header) context.Context {
	return otel.GetTextMapPropagator().Extract(ctx, pairs(h))
}

// Handler makes the context of a handler of requests carry the trace of the member that asks:
//
//	group.Handle("reload", otel.Handler(reload))
func Handler(f func(context.Context, pleach.Request) ([]byte, error)) func(context.Context, pleach.Request) ([]byte,
	error,
) {
	return func(ctx context.Context, r pleach.Request) ([]byte, error) {
		return f(Extract(ctx, r.Header), r)
	}
}

// pairs are a header as propagators see it (a TextMapCarrier). Keys have no case, as those of HTTP:
// some propagators write capitals, which a header does not have.
type pairs pleach.Header

// Get implements propagation.TextMapCarrier.
func (p pairs) Get(key string) string { return p[strings.ToLower(key)] }

// Set implements propagation.TextMapCarrier.
func (p pairs) Set(key, value string) { p[strings.ToLower(key)] = value }

// Keys implements propagation.TextMapCarrier.
func (p pairs) Keys() []string { return slices.Collect(maps.Keys(p)) }

// shrink drops the pairs that are not allowed, and the longest ones until the others can be added to a
// header.
func (p pairs) shrink(to pleach.Header) {
	maps.DeleteFunc(p, func(key, value string) bool { return pleach.Header{key: value}.Validate() != nil })
	for len(p) > 0 && !p.fits(to) {
		longest := ""
		for key, value := range p {
			if longest == "" || len(value) > len(p[longest]) || len(value) == len(p[longest]) && key < longest {
				longest = key
			}
		}
		delete(p, longest)
	}
}

// fits reports whether the pairs can be added to a header.
func (p pairs) fits(to pleach.Header) bool {
	all := pleach.Header(maps.Clone(p))
	for key, value := range to {
		if _, own := all[key]; !own {
			all[key] = value
		}
	}
	return all.Validate() == nil
}
