package cp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
)

// A bare copy is a connection: a line that describes the file and names the processes behind
// this one, the file, and its SHA-256. Each process passes on what it reads, hashes it and
// writes it. When it has the whole file, and the processes behind it have, it answers with a
// byte. That is a pipelined chain, and with one process a single copy.

// bareBuffer is how much a process reads, passes on, hashes and writes at a time.
const bareBuffer = 256 << 10

// bareHeader is the line.
type bareHeader struct {
	Name string   `json:"name"`
	Size int64    `json:"size"`
	Next []string `json:"next"`
}

// serveBare receives files, until the listener is closed.
func (w *worker) serveBare(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if err := w.receiveBare(conn); err != nil {
				fmt.Fprintln(os.Stderr, "bare copy:", err)
				return
			}
			_, _ = conn.Write([]byte{1})
		}()
	}
}

// receiveBare receives one file.
func (w *worker) receiveBare(conn net.Conn) error {
	var h bareHeader
	line, err := readLine(conn)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return err
	}
	sum := sha256.New()
	return passOn(conn, &h, w.dir, sum, func() ([]byte, error) {
		theirs := make([]byte, sha256.Size)
		if _, err := io.ReadFull(conn, theirs); err != nil {
			return nil, err
		}
		if mine := sum.Sum(nil); !bytes.Equal(mine, theirs) {
			return nil, errors.New("the hash is another one")
		}
		return theirs, nil
	})
}

// sendBare sends a file along a chain of processes. It also writes it to a directory, if that
// has a name.
func sendBare(name, dir string, chain []string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	sum := sha256.New()
	h := &bareHeader{Name: name, Size: info.Size(), Next: chain}
	return passOn(file, h, dir, sum, func() ([]byte, error) { return sum.Sum(nil), nil })
}

// passOn copies a file from a reader to a directory, if that has a name, and to the next
// process of the chain, if there is one. It returns when both have it.
func passOn(from io.Reader, h *bareHeader, dir string, sum hash.Hash, check func() ([]byte, error)) (err error) {
	writers := []io.Writer{}
	var next net.Conn
	if len(h.Next) > 0 {
		next, err = net.Dial("tcp", h.Next[0])
		if err != nil {
			return err
		}
		defer next.Close()
		line, err := json.Marshal(bareHeader{h.Name, h.Size, h.Next[1:]})
		if err != nil {
			return err
		}
		if _, err := next.Write(append(line, '\n')); err != nil {
			return err
		}
		writers = append(writers, next)
	}
	writers = append(writers, sum)
	var file *target
	if dir != "" {
		file, err = create(dir, h.Name)
		if err != nil {
			return err
		}
		defer file.Close()
		writers = append(writers, file)
	}
	buffer := make([]byte, bareBuffer)
	all := io.MultiWriter(writers...)
	if _, err := io.CopyBuffer(struct{ io.Writer }{all}, io.LimitReader(from, h.Size), buffer); err != nil {
		return err
	}
	digest, err := check()
	if err != nil {
		return err
	}
	if next != nil {
		if _, err := next.Write(digest); err != nil {
			return err
		}
	}
	if file != nil {
		if err := file.publish(); err != nil {
			return err
		}
	}
	if next != nil {
		_, err = io.ReadFull(next, make([]byte, 1))
	}
	return err
}

// readLine reads a line without reading beyond it.
func readLine(r io.Reader) (line []byte, err error) {
	for b := make([]byte, 1); len(line) < 1<<16; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			return line, nil
		}
	}
	return nil, errors.New("the line is too long")
}
