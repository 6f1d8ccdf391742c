package journal

import (
	"encoding/binary"
	"hash/crc32"
)

// A segment is a file in the log format of LevelDB: blocks of 32 KiB with fragments of records,
// each with a masked CRC-32C, its length and its type. RocksDB, Pebble and Prometheus write
// logs like it (github.com/google/leveldb, doc/log_format.md).

const (
	blockSize = 32 << 10
	headSize  = 4 + 2 + 1 // checksum, length, type
)

// The types of a fragment.
const (
	full = 1 + iota
	first
	middle
	last
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a fragment, masked as LevelDB does: a checksum of data that has
// checksums in it is weak.
func checksum(kind byte, data []byte) uint32 {
	c := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, data)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord appends a record to what is written behind an offset of a segment.
func appendRecord(dst []byte, offset int64, record []byte) []byte {
	start := len(dst)
	for begun := false; ; begun = true {
		room := blockSize - int((offset+int64(len(dst)-start))%blockSize)
		if room < headSize {
			dst = append(dst, make([]byte, room)...)
			room = blockSize
		}
		data := record[:min(len(record), room-headSize)]
		record = record[len(data):]
		kind := byte(middle)
		switch {
		case !begun && len(record) == 0:
			kind = full
		case !begun:
			kind = first
		case len(record) == 0:
			kind = last
		}
		dst = binary.LittleEndian.AppendUint32(dst, checksum(kind, data))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(data)))
		dst = append(append(dst, kind), data...)
		if len(record) == 0 {
			return dst
		}
	}
}

// scan calls yield with the records of a segment, up to the first one that is damaged or not
// whole, or is longer than most. It returns where that begins, or the length of the segment.
// A record is yield's until it returns.
func scan(segment []byte, most int, yield func(record []byte) error) (valid int, err error) {
	var record []byte
	for offset, begun := 0, false; ; {
		if room := blockSize - offset%blockSize; room < headSize {
			offset += room
		}
		if len(segment)-offset < headSize {
			if !begun && offset >= len(segment) {
				valid = len(segment)
			}
			return valid, nil
		}
		head := segment[offset : offset+headSize]
		kind, length := head[6], int(binary.LittleEndian.Uint16(head[4:]))
		offset += headSize
		if length > min(len(segment)-offset, (blockSize-offset%blockSize)%blockSize) {
			return valid, nil
		}
		data := segment[offset : offset+length]
		whole, begins := kind == full || kind == last, kind == full || kind == first
		if kind < full || kind > last || begins == begun || len(record)+length > most ||
			binary.LittleEndian.Uint32(head) != checksum(kind, data) {
			return valid, nil
		}
		record, begun = append(record, data...), !whole
		offset += length
		if whole {
			if err := yield(record); err != nil {
				return valid, err
			}
			record, valid = record[:0], offset
		}
	}
}
