package bootstrap

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/pleach-go/pleach/protocol"
)

// Assignment is the rank of a process and the addresses of all members.
type Assignment struct {
	// Rank is the rank of this process, from 0 to Size−1.
	Rank protocol.Rank
	// Size is the number of processes.
	Size protocol.Rank
	// LocalRank is the number of this process among those of its host.
	LocalRank int
	// Launcher is the launcher that started the process, as in "Slurm".
	Launcher string
	// Addresses are the host:port at which the processes listen, in order of rank.
	// It is nil if the launcher does not provide them.
	Addresses []string
	// Rendezvous is the host:port at which rank 0 tells all processes the addresses, if they
	// are not known: see [Assignment.Meet].
	Rendezvous string
	// Group distinguishes jobs that share hosts. It is the same in all processes of
	// a job, and may be empty.
	Group string
	// Secret keeps processes out that are not of the job. It is the same in all of them;
	// nil: there is none.
	Secret []byte
	// Respawned says that the process takes the place of a dead one of its rank, in a
	// running job: the launcher has set PLEACH_REPLACEMENT.
	Respawned bool

	// listenFD is an inherited socket that listens at this process's address; 0
	// means none, as that would be the standard input.
	listenFD int
	// listener is this process's socket, if it was opened at the rendezvous.
	listener net.Listener
	// hint says how to provide Addresses if the launcher does not.
	hint string
}

// Check returns an error if the process cannot reach the others. A [*MissingError]
// means that their addresses are not known, and says how to provide them.
func (a Assignment) Check() error {
	switch {
	case a.Size < 1 || a.Size > MaxSize:
		return fmt.Errorf("bootstrap: size %d: it must be 1 to %d", a.Size, MaxSize)
	case a.Rank < 0 || a.Rank >= a.Size:
		return fmt.Errorf("bootstrap: rank %d: it must be one of 0 to %d", a.Rank, a.Size-1)
	case a.Addresses == nil:
		const byHand = "set PLEACH_RENDEZVOUS to host:port of rank 0 (any free port), or PLEACH_ADDRESSES to host:port of every process, in order of rank, separated by commas (or PLEACH_ADDRESS_FILE to a file with them)"
		how := byHand
		if a.hint != "" {
			how = a.hint + ", or " + byHand
		}
		return &MissingError{Launcher: cmp.Or(a.Launcher, "the launcher"), Size: a.Size, How: how}
	case protocol.Rank(len(a.Addresses)) != a.Size:
		return fmt.Errorf("bootstrap: %d addresses for %d processes", len(a.Addresses), a.Size)
	}
	if err := checkAddresses(a.Addresses); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// Listening reports whether the sockets of all processes were open before the first one was
// started, so that a process which refuses a connection is gone: `pleach run` does that.
func (a Assignment) Listening() bool { return a.listenFD != 0 }

// Listener returns a socket that listens at the address of this process. Call it
// once: it takes over a socket that `pleach run` has opened.
//
// If the address has an IP, Listener listens on that. If it has a host name, it
// listens on all interfaces: the name may not resolve yet when the process starts
// (Kubernetes), and often resolves to 127.0.1.1 on its own host (Debian).
func (a Assignment) Listener() (net.Listener, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	own := a.Addresses[a.Rank]
	if a.listener != nil {
		return a.listener, nil
	}
	if a.listenFD != 0 {
		return inheritedListener(a.listenFD, own)
	}
	host, port, err := net.SplitHostPort(own)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		host = ""
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("bootstrap: rank %d at %s: %w", a.Rank, own, err)
	}
	return listener, nil
}
