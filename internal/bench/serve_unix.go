//go:build unix

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
)

// Files that a member's process inherits: where it listens, and where it reports.
const (
	listenFile = 3
	reportFile = 4
)

// ServeMember is one member in a process of its own. It does what it is told on
// its standard input until that ends.
func ServeMember(ctx context.Context, name string, size, burst int) error {
	s, ok := systemOf(name)
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
	m := &served{report: os.NewFile(reportFile, "report"), rank: uint32(place.Rank), payload: make([]byte, size), burst: burst}
	m.receiver = &receiver{size: size, burst: burst, arrived: func(uint64) { m.tell(recordArrived, now()) }}
	m.member, err = s.start(seat{place.Group, int(place.Rank), place.Addresses, listener}, m.receiver)
	if err != nil {
		return err
	}
	m.tell(recordReady, 0)
	err = m.serve(ctx, bufio.NewReader(os.Stdin))
	if wrong := m.receiver.err(); wrong != nil {
		err = wrong
	}
	return err // and not closing: others are ending too, and would be waited for
}

// served is a member that reports.
type served struct {
	member   member
	receiver *receiver
	report   io.Writer
	rank     uint32
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
			began := now()
			if err := m.member.broadcast(ctx, m.payload, m.sent, m.burst); err != nil {
				return err
			}
			m.tell(recordBegan, began)
			m.sent += uint64(m.burst)
		case commandCount:
			c := m.member.counts()
			m.tell(recordReceived, m.receiver.count.Load())
			m.tell(recordFrames, c.frames)
			m.tell(recordBytes, c.bytes)
			m.tell(recordCPU, uint64(processorTime()))
		}
	}
}

// tell reports. If nobody listens, the input ends too.
func (m *served) tell(kind recordKind, value uint64) {
	_, _ = m.report.Write(record{kind, m.rank, value}.append(make([]byte, 0, recordSize)))
}

// now is a time that other processes of this host understand.
func now() uint64 { return uint64(time.Now().UnixNano()) }
