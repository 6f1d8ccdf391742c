package launch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// maxListed is the largest number of addresses that processes get in a variable.
// More come in a file: every process would have a copy of them.
const maxListed = 512

// Sockets are the listening sockets of the ranks of this host. All are open
// before the first process starts, so that no other program can get a port in
// between, and a process that is slow to start is not refused.
type Sockets struct {
	// Addresses are by rank, of all ranks.
	Addresses []string

	group     string
	secret    string             // known to the processes of the job only
	first     int                // rank of this host
	listeners []*net.TCPListener // of this host's ranks; nil: closed, or handed over
	file      string             // with the addresses, or ""
}

// Listen opens a socket on loopback for each of so many ranks of a group.
func Listen(group string, size int) (*Sockets, error) {
	s, err := listenAt(net.IPv4(127, 0, 0, 1), 0, size)
	if err != nil {
		return nil, err
	}
	return s, s.complete(group, newSecret(), s.Addresses)
}

// newSecret makes what the processes of a job know each other by.
func newSecret() string { return rand.Text() }

// listenAt opens sockets for some of the ranks of a group. Until complete, Addresses are
// theirs alone.
func listenAt(ip net.IP, first, count int) (*Sockets, error) {
	s := &Sockets{first: first, listeners: make([]*net.TCPListener, count)}
	for i := range s.listeners {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot open a socket for each of %d processes: %w", count, err), s.Close())
		}
		s.listeners[i] = l
		s.Addresses = append(s.Addresses, l.Addr().String())
	}
	return s, nil
}

// complete adds what all ranks have in common.
func (s *Sockets) complete(group, secret string, addresses []string) error {
	s.group, s.secret, s.Addresses = group, secret, addresses
	if len(addresses) > maxListed {
		if err := s.writeFile(); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return nil
}

func (s *Sockets) writeFile() error {
	f, err := os.CreateTemp("", "pleach-run-*")
	if err != nil {
		return err
	}
	s.file = f.Name()
	_, err = f.WriteString(strings.Join(s.Addresses, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// Take hands a rank's listener to the caller, which closes it. It returns nil if
// the rank's socket was taken, closed or inherited before.
func (s *Sockets) Take(rank int) *net.TCPListener {
	l := s.listeners[rank-s.first]
	s.listeners[rank-s.first] = nil
	return l
}

// Start starts the process of a rank. The process inherits the rank's socket as
// descriptor 3 and is then the only one that holds it, so that peers see its
// death. A process that is started again for the same rank inherits none.
func (s *Sockets) Start(rank int, c Command) (*Process, error) {
	var socket *os.File
	if l := s.Take(rank); l != nil {
		var err error
		socket, err = l.File()
		l.Close() // the file is a copy
		if errors.Is(err, errors.ErrUnsupported) {
			err = ErrUnsupported
		}
		if err != nil {
			return nil, fmt.Errorf("cannot start rank %d: %w", rank, err)
		}
		defer socket.Close()
	}
	p, err := start(c, s.environment(rank), append([]*os.File{socket}, c.Files...))
	if err != nil {
		return nil, fmt.Errorf("cannot start rank %d: %w", rank, err)
	}
	return p, nil
}

func (s *Sockets) startRank(rank int, c Command) (worker, error) { return s.Start(rank, c) }

// ownedVariables are those that a launcher sets for each of its processes.
var ownedVariables = []string{
	"PLEACH_RANK", "PLEACH_LOCAL_RANK", "PLEACH_SIZE", "PLEACH_GROUP", "PLEACH_SECRET", "PLEACH_LISTEN_FD",
	"PLEACH_ADDRESSES", "PLEACH_ADDRESS_FILE", replacementVariable, reportVariable,
}

// environment is this process's own with the variables that package bootstrap
// reads.
func (s *Sockets) environment(rank int) []string {
	// This program may itself be a rank of another job.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ownedVariables, name)
	})
	env = append(env,
		fmt.Sprintf("PLEACH_RANK=%d", rank),
		fmt.Sprintf("PLEACH_LOCAL_RANK=%d", rank-s.first),
		fmt.Sprintf("PLEACH_SIZE=%d", len(s.Addresses)),
		"PLEACH_GROUP="+s.group,
		"PLEACH_SECRET="+s.secret, // other users see arguments, and not the environment
		"PLEACH_LISTEN_FD=3",
	)
	if s.file != "" {
		return append(env, "PLEACH_ADDRESS_FILE="+s.file)
	}
	return append(env, "PLEACH_ADDRESSES="+strings.Join(s.Addresses, ","))
}

// Close closes the sockets that no process has inherited, and removes the file
// of addresses: processes that have not read it cannot any more.
func (s *Sockets) Close() error {
	var errs []error
	for i := range s.listeners {
		if l := s.Take(s.first + i); l != nil {
			errs = append(errs, l.Close())
		}
	}
	if s.file != "" {
		errs = append(errs, os.Remove(s.file))
		s.file = ""
	}
	return errors.Join(errs...)
}
