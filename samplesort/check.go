package samplesort

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Checked is what [Check] has found in an output.
type Checked struct {
	Summary
	Files int
	// Duplicates is how many records have the key of the record before.
	Duplicates int
}

// Check reads the output of a job, as valsort of the sort benchmark does: all records are in
// order, and their number and checksum are those that the marker has. It returns an
// [*OrderError] for the first record that is not in order.
func Check(ctx context.Context, dir string) (Checked, error) {
	want, err := readMarker(dir)
	if err != nil {
		return Checked{}, err
	}
	c := checker{rules: rules{Records, want.Order}, Checked: Checked{Files: want.Files}}
	if want.Format == Lines.String() {
		c.Format = Lines
	}
	for task := range want.Files {
		if err := errors.Join(ctx.Err(), c.file(filepath.Join(dir, fileName(task)))); err != nil {
			return Checked{}, err
		}
	}
	if c.Records != want.Records || c.Checksum() != want.Checksum {
		return c.Checked, fmt.Errorf("samplesort: %s has %d records with checksum %s: it was written with %d and %s",
			dir, c.Records, c.Checksum(), want.Records, want.Checksum)
	}
	return c.Checked, nil
}

// OrderError says which record of an output is not in order.
type OrderError struct {
	File   string
	Record int // from 0
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("samplesort: record %d of %s is less than the one before", e.Record, e.File)
}

func readMarker(dir string) (m marker, err error) {
	b, err := os.ReadFile(filepath.Join(dir, Marker))
	if errors.Is(err, os.ErrNotExist) {
		return m, fmt.Errorf("samplesort: %s is no complete output: %w", dir, err)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("samplesort: %s: %w", filepath.Join(dir, Marker), err)
	}
	return m, nil
}

// checker adds up the records of one file after the other.
type checker struct {
	Checked
	rules
	last []byte // the key of the record before
}

func (c *checker) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, bufferSize)
	for i := 0; ; i++ {
		record, err := c.read(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", name, i, err)
		}
		key := c.key(record)
		if c.Records > 0 {
			switch c.compareKeys(key, c.last) {
			case -1:
				return &OrderError{name, i}
			case 0:
				c.Duplicates++
			}
		}
		c.add(record)
		c.last = append(c.last[:0], key...)
	}
}

// read returns the next record. It is valid until the next call.
func (c *checker) read(r *bufio.Reader) ([]byte, error) {
	if c.Format == Records {
		record, err := r.Peek(recordSize)
		if len(record) > 0 && err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		_, err = r.Discard(recordSize)
		return record, err
	}
	record, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		record = bytes.Clone(record)
		var rest []byte
		rest, err = r.ReadBytes('\n')
		record = append(record, rest...)
	}
	if len(record) > 0 && errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	return record, err
}
