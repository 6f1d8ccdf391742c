package bootstrap

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"

	"github.com/pleach-go/pleach/protocol"
)

// Place is who a process is and where the others are.
type Place struct {
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
func (p Place) Check() error {
	switch {
	case p.Size < 1 || p.Size > MaxSize:
		return fmt.Errorf("bootstrap: size %d: it must be 1 to %d", p.Size, MaxSize)
	case p.Rank < 0 || p.Rank >= p.Size:
		return fmt.Errorf("bootstrap: rank %d: it must be one of 0 to %d", p.Rank, p.Size-1)
	case p.Addresses == nil:
		const byHand = "set PLEACH_ADDRESSES to host:port of every process, in order of rank, with commas between (or PLEACH_ADDRESS_FILE to a file with them)"
		how := byHand
		if p.hint != "" {
			how = p.hint + ", or " + byHand
		}
		return &MissingError{Launcher: cmp.Or(p.Launcher, "the place"), Size: p.Size, How: how}
	case protocol.Rank(len(p.Addresses)) != p.Size:
		return fmt.Errorf("bootstrap: %d addresses for %d processes", len(p.Addresses), p.Size)
	}
	if err := checkAddresses(p.Addresses); err != nil {
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
func (p Place) Listener() (net.Listener, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	own := p.Addresses[p.Rank]
	if p.listenFD != 0 {
		return inheritedListener(p.listenFD, own)
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
		return nil, fmt.Errorf("bootstrap: rank %d at %s: %w", p.Rank, own, err)
	}
	return listener, nil
}
