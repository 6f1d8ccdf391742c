package pleach

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/stream"
	"github.com/pleach-go/pleach/transport"
)

// Config says who is in a group and how it communicates. The zero value is a
// good one for a program started by a launcher (pleach run, Slurm, mpirun,
// torchrun, a Kubernetes Indexed Job): who is who is then read from the
// environment.
//
// A group begins in one of three ways: as a whole, from Addresses or a launcher;
// with one member, by Found; and it grows when others join it, by Seeds.
type Config struct {
	// Group names the group: members of different groups do not talk. Empty:
	// what the launcher calls it.
	Group string
	// Addresses are the members' addresses, host:port, by rank; Rank is this
	// process's place among them. Without addresses, both come from the
	// environment.
	Addresses []string
	Rank      int

	// Seeds are addresses of members of a running group, which this process
	// joins: any one of them that is alive will do. Found begins a group of one
	// instead, which others then join.
	Seeds []string
	Found bool
	// Address is where this process listens, host:port, with Seeds or Found.
	// Empty, or port 0: a free port, at the address by which the seeds are reached;
	// with Found, of the loopback interface.
	Address string
	// Identity is who this process is, over all its starts: who comes back under
	// the same identity gets its old rank, if nobody else has it. Empty: its
	// address. Domain is what it fails with, as a rack or a zone: ranks are
	// dealt so that ring neighbors differ in it where that is possible.
	Identity, Domain string

	// Fixed says that who is in the group never changes, as far as anybody
	// knows: there is one view, nobody is suspected, the dead stay members and are
	// corrected around.
	Fixed bool
	// NoQuorum lets any number of members go on when others have died, down to
	// the last. It is safe only where nobody is ever suspected who lives, as
	// among the processes of one host: otherwise two halves of a network would
	// each go on. Without it a majority goes on, and the rest stops.
	NoQuorum bool
	// StartGrace is how long the members of a group that is started as a whole
	// may take to start: 30 s.
	StartGrace time.Duration
	// SWIMPort, if not 0, is a port that every member's host uses to find hosts
	// that have fallen silent (SWIM, by hashicorp/memberlist): one member per host.
	// Grace is how long a member may be silent: 1 s. SWIMKey, of 16, 24 or 32
	// bytes, protects it. A process that was killed is found without it.
	SWIMPort int
	Grace    time.Duration
	SWIMKey  []byte
	// Detectors report further suspicions, as from a scheduler ([detect.Feed]).
	// They are closed with the group.
	Detectors []detect.Detector

	// TLS, if not nil, protects every connection: TLS 1.3, and both sides show a
	// certificate of the group's authority (Certificates, RootCAs, ClientCAs).
	TLS *tls.Config
	// Transport, if not nil, is used instead of TCP, and closed with the group.
	// Stream.Rank and Stream.Size then say who this is, and the group is Fixed
	// unless Addresses are given too.
	Transport transport.Transport
	// Handler, if not nil, is called with each message, instead of
	// [Group.Messages] yielding it: in the same order, one at a time, by the
	// goroutine that has received it. That is the quickest way to get a message;
	// a handler that takes its time holds up what this member receives. It may
	// broadcast; it must not call Close.
	Handler func(Message)
	// Stream holds limits and the tree's shape. Rank, Size and Incarnation are
	// filled in, except as said above.
	Stream stream.Config
	// Logger is told of views, of suspicions and of peers that come and go. Nil:
	// silent.
	Logger *slog.Logger
}
