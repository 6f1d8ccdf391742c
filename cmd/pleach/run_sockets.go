//go:build unix

package main

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// maxListed is the largest number of addresses that processes get in a variable.
// More come in a file: every process would have a copy of them.
const maxListed = 512

// sockets are where the processes will listen. All are open before the first
// process starts, so nobody else can get a port in between, and a process that
// is slow to start is not refused.
type sockets struct {
	files     []*os.File
	addresses []string
	file      string // with the addresses, or ""
	inherited []string
	group     string
}

func openSockets(size int) (*sockets, error) {
	s := &sockets{group: "run-" + rand.Text()[:12]}
	for range size {
		if err := s.open(); err != nil {
			s.close()
			return nil, fmt.Errorf("cannot open a socket for each of %d processes: %w", size, err)
		}
	}
	if size > maxListed {
		if err := s.writeFile(); err != nil {
			s.close()
			return nil, err
		}
	}
	// Where this command is itself started by another pleach run.
	s.inherited = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PLEACH_ADDRESSES=") || strings.HasPrefix(v, "PLEACH_ADDRESS_FILE=")
	})
	return s, nil
}

func (s *sockets) open() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close() // the file is a copy
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	s.files = append(s.files, file)
	s.addresses = append(s.addresses, listener.Addr().String())
	return nil
}

func (s *sockets) writeFile() error {
	f, err := os.CreateTemp("", "pleach-run-*")
	if err != nil {
		return err
	}
	s.file = f.Name()
	if _, err := f.WriteString(strings.Join(s.addresses, "\n") + "\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// environment is what a process finds, in the words of package bootstrap.
func (s *sockets) environment(rank int) []string {
	env := append(slices.Clone(s.inherited),
		fmt.Sprintf("PLEACH_RANK=%d", rank),
		fmt.Sprintf("PLEACH_SIZE=%d", len(s.addresses)),
		"PLEACH_GROUP="+s.group,
		"PLEACH_LISTEN_FD=3",
	)
	if s.file != "" {
		return append(env, "PLEACH_ADDRESS_FILE="+s.file)
	}
	return append(env, "PLEACH_ADDRESSES="+strings.Join(s.addresses, ","))
}

// close closes what no process got, and removes the file.
func (s *sockets) close() {
	for _, f := range s.files {
		f.Close()
	}
	if s.file != "" {
		os.Remove(s.file)
	}
}
