package otel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	pleachotel "github.com/pleach-go/pleach/otel"
)

// recordedTrace is what the picture of docs/operate/monitor.md is drawn from.
const recordedTrace = "../lab/draw/testdata/trace.json"

// tracedMember is a member with a tracer of its own, as each process has one.
type tracedMember struct {
	*pleach.Group
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// tracedMembers starts members over TCP, whose spans all go to one file.
func tracedMembers(t *testing.T, n int, file io.Writer) (members []tracedMember) {
	t.Helper()
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(file))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id := fmt.Sprintf("web%d", i+1)
		config := pleach.Config{Group: "web", ID: id, Listen: "127.0.0.1:0"}
		var g *pleach.Group
		if i == 0 {
			g, err = pleach.Create(t.Context(), config)
		} else {
			g, err = pleach.Join(t.Context(), config, members[0].Self().Address)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		process := resource.NewSchemaless(attribute.String("service.instance.id", id))
		provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(process))
		t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
		members = append(members, tracedMember{g, provider, provider.Tracer("pleach")})
	}
	return members
}

// receive receives messages until one has a trace, and ends a span of it.
func (m *tracedMember) receive(ctx context.Context) error {
	for message, err := range m.Messages(ctx) {
		if err != nil {
			return err
		}
		if parent := pleachotel.Extract(ctx, message.Header); trace.SpanContextFromContext(parent).IsValid() {
			_, span := m.tracer.Start(parent, "receive", trace.WithSpanKind(trace.SpanKindConsumer))
			span.End()
			return nil
		}
	}
	return errors.New("no message with a trace")
}

// deploy broadcasts a message and waits for its receipt.
func (m *tracedMember) deploy(ctx context.Context) error {
	ctx, deploy := m.tracer.Start(ctx, "deploy")
	defer deploy.End()
	sending, broadcast := m.tracer.Start(ctx, "broadcast", trace.WithSpanKind(trace.SpanKindProducer))
	err := m.Broadcast(pleachotel.Inject(sending, m.View()), []byte("v42"))
	broadcast.End()
	if err != nil {
		return err
	}
	_, receipt := m.tracer.Start(ctx, "wait for the receipt", trace.WithSpanKind(trace.SpanKindClient))
	defer receipt.End()
	_, err = m.WaitStable(ctx)
	return err
}

// One trace of a broadcast over 8 members, as the exporter of OpenTelemetry writes it, has the spans of
// the sender and of all receivers, which end before the receipt is complete or soon after.
func TestTraceOfABroadcast(t *testing.T) {
	before := otel.GetTextMapPropagator()
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	var file bytes.Buffer
	members := tracedMembers(t, 8, &file)
	sender := members[0]
	if err := sender.Broadcast(t.Context(), []byte("so that connections are open")); err != nil {
		t.Fatal(err)
	}
	if _, err := sender.WaitStable(t.Context()); err != nil {
		t.Fatal(err)
	}
	var receivers sync.WaitGroup
	for _, m := range members[1:] {
		receivers.Go(func() {
			if err := m.receive(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if err := sender.deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	receivers.Wait()
	for _, m := range members { // until now nothing was written: it would take longer than the broadcast
		if err := m.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	type id struct{ TraceID, SpanID string }
	spans := make(map[string][]id)
	traces, broadcast := make(map[string]bool), ""
	for lines := json.NewDecoder(bytes.NewReader(file.Bytes())); lines.More(); {
		var s struct {
			Name        string
			SpanContext id
			Parent      id
		}
		if err := lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		spans[s.Name] = append(spans[s.Name], s.Parent)
		traces[s.SpanContext.TraceID] = true
		if s.Name == "broadcast" {
			broadcast = s.SpanContext.SpanID
		}
	}
	for _, parent := range spans["receive"] {
		if parent.SpanID != broadcast {
			t.Errorf("a receiver's span has the parent %s, want %s", parent.SpanID, broadcast)
		}
	}
	if len(traces) != 1 || len(spans) != 4 || len(spans["receive"]) != 7 {
		t.Errorf("%d traces with %v", len(traces), spans)
	}
	if testutil.UpdateGolden.On() {
		if err := os.WriteFile(recordedTrace, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
