package bench

import (
	"encoding/binary"
	"io"
	"os"
	"time"
)

// Record is what a member in a process of its own reports, over a pipe that it
// shares with the others. A write of some records is shorter than what a pipe
// takes at once, so that those of several members do not mix.
type Record struct {
	Kind  RecordKind
	Rank  uint32
	Value uint64
}

// RecordKind says what a record's value means. Each benchmark has its own.
type RecordKind uint32

// recordSize is that of an encoded record, in bytes.
const recordSize = 16

// append writes the record behind what is in dst.
func (r Record) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.Kind))
	dst = binary.BigEndian.AppendUint32(dst, r.Rank)
	return binary.BigEndian.AppendUint64(dst, r.Value)
}

func parseRecord(b []byte) Record {
	return Record{RecordKind(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])}
}

// Reporter writes the records of one member.
type Reporter struct {
	w    io.Writer
	rank uint32
}

// NewReporter returns a reporter for the pipe that the process inherited.
func NewReporter(rank int) *Reporter { return &Reporter{InheritedPipe(), uint32(rank)} }

// InheritedPipe is the report pipe of a member's process: its first file behind
// the rank's socket.
func InheritedPipe() *os.File { return os.NewFile(4, "report") }

// Record makes a record of this member.
func (r *Reporter) Record(kind RecordKind, value uint64) Record { return Record{kind, r.rank, value} }

// Report writes records, in one write. If the reader is gone, the member's input
// ends too.
func (r *Reporter) Report(records ...Record) {
	b := make([]byte, 0, len(records)*recordSize)
	for _, record := range records {
		b = record.append(b)
	}
	_, _ = r.w.Write(b)
}

// Now is a time that other processes of this host understand.
func Now() uint64 { return uint64(time.Now().UnixNano()) }
