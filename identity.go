package pleach

import (
	"crypto/rand"
	"encoding/binary"
)

// newNonce draws the number that tells this start of a process from all others.
func newNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:]) | 1
}
