package otel_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pleach-go/pleach"
	pleachotel "github.com/pleach-go/pleach/otel"
)

// One trace has a broadcast and what each of 8 members does with it.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	tracer := otel.Tracer("example")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	var receivers sync.WaitGroup
	for range 7 {
		g, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
		if err != nil {
			log.Fatal(err)
		}
		defer g.Close()
		receivers.Go(func() {
			for m, err := range g.Messages(ctx) {
				if err != nil {
					continue
				}
				_, span := tracer.Start(pleachotel.Extract(ctx, m.Header), "flush the cache")
				span.End()
				return
			}
		})
	}

	sending, span := tracer.Start(ctx, "broadcast")
	if err := first.Broadcast(pleachotel.Inject(sending, first.View()), []byte("flush")); err != nil {
		log.Fatal(err)
	}
	receivers.Wait()
	span.End()

	children := 0
	for _, s := range spans.GetSpans() {
		if s.SpanContext.TraceID() == span.SpanContext().TraceID() && s.Parent.SpanID() == span.SpanContext().SpanID() {
			children++
		}
	}
	fmt.Println("spans of other members in the trace:", children)
	// Output: spans of other members in the trace: 7
}
