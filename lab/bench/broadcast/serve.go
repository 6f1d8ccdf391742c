package broadcast

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/lab/bench"
)

// What a member in a process of its own reports.
const (
	recordReady    bench.RecordKind = iota + 1 // the member is there
	recordBegan                                // the root begins a burst, at a time
	recordArrived                              // a burst has arrived, at a time
	recordReceived                             // so many messages have arrived, and so on:
	recordFrames
	recordBytes
	recordCPU // in nanoseconds; the last of a member's counts
)

// Commands to a member, a byte each.
const (
	commandBroadcast = 'b'
	commandCount     = 'c'
)

// ServeMember is one member in a process of its own. It executes the commands on
// its standard input until that ends.
func ServeMember(ctx context.Context, name string, size, burst int) error {
	s, ok := builtinOf(name)
	if !ok || size < 0 || size > maxSize || burst < 1 {
		return fmt.Errorf("bench: system %q, size %d, burst %d", name, size, burst)
	}
	place, err := bootstrap.Detect(os.Getenv)
	if err != nil {
		return err
	}
	listener, err := place.Listener()
	if err != nil {
		return err
	}
	m := &served{reporter: bench.NewReporter(int(place.Rank)), payload: make([]byte, size), burst: burst}
	m.receiver = &receiver{size: size, burst: burst, arrived: func(uint64) { m.report(recordArrived, bench.Now()) }}
	m.member, err = s.start(memberConfig{place.Group, int(place.Rank), place.Addresses, listener}, m.receiver)
	if err != nil {
		return err
	}
	m.report(recordReady, 0)
	err = m.serve(ctx, bufio.NewReader(os.Stdin))
	if wrong := m.receiver.err(); wrong != nil {
		err = wrong
	}
	return err // without closing, which would wait for other members, and they end too
}

// served is a member that reports.
type served struct {
	member   member
	receiver *receiver
	reporter *bench.Reporter
	payload  []byte
	burst    int
	sent     uint64
}

func (m *served) serve(ctx context.Context, commands io.ByteReader) error {
	for {
		command, err := commands.ReadByte()
		if err != nil || m.receiver.err() != nil {
			return nil // the end of the input
		}
		switch command {
		case commandBroadcast:
			began := bench.Now()
			if err := m.member.broadcast(ctx, m.payload, m.sent, m.burst); err != nil {
				return err
			}
			m.report(recordBegan, began)
			m.sent += uint64(m.burst)
		case commandCount:
			c := m.member.counts()
			m.report(recordReceived, m.receiver.count.Load())
			m.report(recordFrames, c.frames)
			m.report(recordBytes, c.bytes)
			m.report(recordCPU, uint64(bench.ProcessorTime()))
		}
	}
}

func (m *served) report(kind bench.RecordKind, value uint64) {
	m.reporter.Report(m.reporter.Record(kind, value))
}
