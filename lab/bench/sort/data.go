package sort

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

const (
	recordSize = 100
	keySize    = 10
)

// writeInput writes records that pleach sort and GNU sort bring into the same order: lines
// of 100 bytes that begin with a random key of ten printable characters and, for equal keys,
// the record's number.
func writeInput(name string, records int, seed uint64) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	random := rand.New(rand.NewPCG(seed, 1))
	record := make([]byte, 0, recordSize)
	for i := range records {
		record = record[:0]
		for range keySize {
			record = append(record, byte(' '+random.IntN('~'-' '+1)))
		}
		record = fmt.Appendf(record, "  %032X  ", i)
		for len(record) < recordSize-1 {
			record = append(record, byte('A'+i%26))
		}
		if _, err := w.Write(append(record, '\n')); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// digest is of an output.
type digest [sha256.Size]byte

// digestOf returns the digest of files, one after the other.
func digestOf(names ...string) (d digest, err error) {
	h := sha256.New()
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return d, err
		}
		_, err = io.Copy(h, file)
		file.Close()
		if err != nil {
			return d, err
		}
	}
	return digest(h.Sum(nil)), nil
}
