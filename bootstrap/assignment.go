package bootstrap

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/pleach-go/pleach/protocol"
)

// Assignment is who a process is and where the others are.
type Assignment struct {
	// Rank is this process's number, from 0 to Size−1.
	Rank protocol.Rank
	// Size is the number of processes.
	Size protocol.Rank
	// LocalRank numbers the processes of one host.
	LocalRank int
	// Launcher is what started the process, as in "Slurm".
	Launcher string
	// Addresses are where the processes listen, as host:port in order of rank.
	// It is nil if the launcher does not tell.
	Addresses []string
	// Group tells jobs apart that might meet on one host. It is the same in all
	// processes of a job, and may be empty.
	Group string

	// listenFD is an inherited socket that listens at this place's address; 0 is
	// none, as that would be the standard input.
	listenFD int
	// hint says how to make Addresses known where they are not.
	hint string
}

// Check reports whether the process can find the others. A [*MissingError] says
// that their addresses are not known, and how to give them.
func (a Assignment) Check() error {
	switch {
	case a.Size < 1 || a.Size > MaxSize:
		return fmt.Errorf("bootstrap: size %d: it must be 1 to %d", a.Size, MaxSize)
	case a.Rank < 0 || a.Rank >= a.Size:
		return fmt.Errorf("bootstrap: rank %d: it must be one of 0 to %d", a.Rank, a.Size-1)
	case a.Addresses == nil:
		const byHand = "set PLEACH_ADDRESSES to host:port of every process, in order of rank, with commas between (or PLEACH_ADDRESS_FILE to a file with them)"
		how := byHand
		if a.hint != "" {
			how = a.hint + ", or " + byHand
		}
		return &MissingError{Launcher: cmp.Or(a.Launcher, "the place"), Size: a.Size, How: how}
	case protocol.Rank(len(a.Addresses)) != a.Size:
		return fmt.Errorf("bootstrap: %d addresses for %d processes", len(a.Addresses), a.Size)
	}
	if err := checkAddresses(a.Addresses); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// Listener returns a socket that listens at this place's address. Call it once:
// a socket that `pleach run` has opened is handed over.
//
// An IP address is listened at as it is. Where the address is a host's name, all
// interfaces are: a name may not be known yet when the process starts
// (Kubernetes), and often means 127.0.1.1 on the host that bears it (Debian).
func (a Assignment) Listener() (net.Listener, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	own := a.Addresses[a.Rank]
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
