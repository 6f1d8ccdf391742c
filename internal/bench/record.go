package bench

import "encoding/binary"

// record is what a member in a process of its own reports, over a pipe that it
// shares with the others: records are short enough not to be mixed up.
type record struct {
	kind  recordKind
	rank  uint32
	value uint64
}

type recordKind uint32

const (
	recordReady    recordKind = iota + 1 // the member is there
	recordBegan                          // the root begins a burst, at a time
	recordArrived                        // a burst has arrived, at a time
	recordReceived                       // so many messages have arrived, and so on:
	recordFrames
	recordBytes
	recordCPU // in nanoseconds; the last of a member's counts

	// What a [Survivor] sees, in one write each:
	recordView        // it is in the view of this number
	recordMissing     // in which nobody has this rank; one for each such rank
	recordInstalled   // since this time; the last of a view's records
	recordSuspects    // somebody is thought dead
	recordSuspectedAt // since this time
	recordEvicted     // the others have gone on without it
)

const recordSize = 16

// append writes the record behind what is in dst.
func (r record) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.kind))
	dst = binary.BigEndian.AppendUint32(dst, r.rank)
	return binary.BigEndian.AppendUint64(dst, r.value)
}

func parseRecord(b []byte) record {
	return record{recordKind(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])}
}

// Commands to a member, a byte each. The end of the input is the end.
const (
	commandBroadcast = 'b'
	commandCount     = 'c'
)
