package pleach

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/topology"
	"github.com/pleach-go/pleach/transport"
)

// Config configures [Start], [Create], [Join], [NewWorld] and [Inspect]. The
// zero value works for a program started by a launcher (pleach run, Slurm,
// mpirun, torchrun, a Kubernetes Indexed Job): [Start] and [NewWorld] then read
// rank and addresses from the environment. A setting that has no effect in a
// call is a [*ConfigError].
type Config struct {
	// Group names the group. Members of different groups do not talk to each
	// other. If empty, the launcher's name for it; without a launcher the empty name
	// is a name like any other.
	Group string

	// Addresses are the members' addresses, host:port, by rank, and Rank is this
	// process's index in them. Start and NewWorld use them. If empty, both come
	// from the launcher.
	Addresses []string
	Rank      int

	// Expect makes [Join] the one start command of all members: if the seeds know no
	// running group, Join begins one together with the other processes that do the
	// same, as soon as there are Expect of them. Expect is the number of all processes
	// that are started for the group, without observers, and all of them use the same. Join
	// waits for the others until its context ends. If zero, Join only joins a running group.
	Expect int

	// Listen is the host:port that Create and Join listen on. If empty, or with
	// port 0, a free port: Join uses the interface that reaches the seeds, Create
	// the loopback interface.
	Listen string
	// Advertise is the host:port under which the other members reach this
	// process. If empty, Listen with the port that was opened. It is required if
	// Listen names no specific host, as 0.0.0.0 does.
	Advertise string
	// ID names this process across restarts: rejoining with it restores the old
	// rank if that is free. One live process has an ID at a time. If empty, the
	// advertised address.
	ID string
	// FailureDomain names what fails together with this process, as a rack or a
	// zone. The group assigns ranks so that ring neighbors differ in it where
	// possible. If empty, the domain is unknown.
	FailureDomain string
	// Meta describes this process to the other members, for example its version or
	// its role: [Member.Meta]. It may be any bytes, 512 at most. A process that joins has
	// it from its first view on, and members that begin a group together a view later.
	// [Group.SetMeta] changes it. If empty, there is none.
	Meta string

	// Observer makes this process a member that does not count: it gets and sends everything, and
	// is in every view, but the others need no acknowledgment of it to continue. So any number of
	// observers may fail at once, as long as a majority of the voters is alive. Observers join a
	// group that voters have begun: with Expect, which counts voters only, Join waits for it. The
	// group needs protocol version 6. If false, this process votes. [Group.SetObserver] changes it.
	Observer bool

	// State is the state that all members of the group keep, for joiners to get it. All
	// members use one, or none does. If nil, a joiner gets messages only.
	State State
	// Agree are settings of the program that must be the same at all members, by name, such as
	// the version of a file format. They are compared as the settings of the group itself are:
	// Join returns a [*SettingError] if a member has another value. A name that only one side
	// has is not compared. Names and values have 1 KiB together at most. If nil, there are none.
	Agree map[string]string

	// OnMessage is called with each message and error that [Group.Messages] would yield, instead:
	// in the same order, one at a time, on the goroutine that received it. It gets the
	// messages of every topic, too, in one order with the others of their sender.
	// That is the fastest way to receive. A slow function delays what this member
	// receives, credits included. A function that broadcasts more than a window is
	// blocked until its context ends, so it leaves that to another goroutine. It must
	// not call Close or Abort. If nil, Messages yields them.
	OnMessage func(m Message, err error)
	// OnCurrent is called once in each membership, by OnMessage's goroutine or by one that receives
	// from [Group.Messages], when the program is current: it has the [*GapError], if there is one, its
	// State is restored, and all messages of the view and of later ones follow. If nil, it is not
	// called.
	OnCurrent func()
	// OnView is called by OnMessage's goroutine where each view begins, after all messages of the
	// views before and before all of its own: first with the first view of each membership. It needs
	// OnMessage. Without it, [Group.Views] yields the views, in no order with messages. If nil, it
	// is not called.
	OnView func(View)
	// Delivery selects what this process receives from its first view on.
	Delivery Delivery

	// Static fixes the membership: there is one view, no detector runs, and dead
	// members stay in the view while broadcasts bypass them. If false, members agree on
	// views.
	Static bool
	// AllowMinority lets any number of members continue after failures, down to
	// the last. It is safe only where no live process is ever suspected, as among
	// the processes of one host: otherwise both sides of a partition continue.
	// If false, a majority of the voters continues, or half with the lowest rank, or which the
	// Arbiter chooses. On the other
	// side Broadcast returns [ErrNoQuorum], and so do the calls of a World after
	// Job.QuorumTimeout. All members use the same. A World whose processes are all on one
	// host behaves as if it were true.
	AllowMinority bool
	// Arbiter decides which half continues when exactly half of the voters is left: then a group of
	// two survives the death of either member, and one side of every partition continues. With an
	// arbiter, half of the voters continues only after [Arbiter.Grant] has returned true there, even
	// if it has the lowest rank; a majority never asks. Without an answer it waits, and
	// [QuorumError].Arbiter says so. All members use one, and the same. If nil, half continues with the
	// lowest rank.
	Arbiter Arbiter

	// Network replaces parts of the network: transport, dialer, and the shape of the tree.
	Network Network
	// Security says who may be a member, and protects connections.
	Security Security
	// Detection says when a member is suspected to have failed.
	Detection Detection
	// Recovery says how this process returns after a restart or a removal.
	Recovery Recovery
	// Limits bounds memory and message sizes.
	Limits Limits
	// Job has the settings of jobs, for NewWorld.
	Job Job
	// Logger receives views, suspicions and connections that open and close. If
	// nil, nothing is logged.
	Logger *slog.Logger
}

// Network replaces parts of the network that connects the members. The zero value is TCP
// and a binomial tree.
type Network struct {
	// Transport replaces TCP. The group closes it. Without Addresses the group
	// is static, and Rank and Size describe it. If nil, TCP.
	Transport transport.Transport
	// Size is the number of members of a static group that has a Transport and
	// no Addresses.
	Size int
	// Dial opens this process's connections to other members and to seeds, as that of a
	// proxy does: see [net/http.Transport.DialContext]. If nil, a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Shape is the shape of the broadcast tree. If zero, binomial. All members
	// use the same.
	Shape topology.Shape
}

// Security says who may be a member and what operators may do, and protects connections. With
// the zero value, every process that reaches a member may join.
type Security struct {
	// TLS protects every connection with TLS 1.3. Both sides present a
	// certificate of the group's authority (Certificates, RootCAs, ClientCAs). The
	// certificate says which member a process may be: by the URI
	// spiffe://TRUST-DOMAIN/pleach/GROUP/ID or, without such a URI, by a DNS name that
	// equals the ID, or by the host of the member's address. [TLSFiles] makes one that
	// follows files, so that certificates can be rotated. If nil, connections are not
	// protected.
	TLS *tls.Config
	// HostCertificates accepts certificates that name a host or an ID without a Pleach URI
	// even if this process's own certificate has such a URI. Set it while a group changes
	// from certificates of hosts to certificates with URIs. If false, a process whose
	// certificate has a URI accepts only such certificates.
	HostCertificates bool
	// Secret keeps processes out that do not know it, where TLS is not possible: both
	// sides of every connection prove that they know it, without sending it. It has at
	// least 16 random bytes. It does not encrypt messages, and does not protect them
	// from a process that can change packets between members. All members use the
	// same. If empty, that of SecretFile or of the launcher (PLEACH_SECRET, which pleach run
	// sets), unless there is TLS; elsewhere none.
	Secret []byte
	// SecretFile is a file with the group's secret, or with up to four, one in each line:
	// this process proves the first, and accepts all. The file is read again within a second
	// after a change, so that the secret can be replaced while the group runs; a file that is
	// damaged changes nothing. It must not be open to all users of the host. If empty, Secret
	// counts.
	SecretFile string
	// DenyFile is a file with certificates and members that are denied, one in each line:
	// "serial HEX", "id ID" or "uri URI". The file is read again within a second after a
	// change; one with a mistake changes nothing, and is logged. New connections and requests
	// of a denied process are refused with [ErrRevoked], open connections end, and the other
	// members evict it while they are a quorum. It needs TLS, which proves who a process
	// is. If empty, nothing is denied.
	DenyFile string
	// OnOperator is called with each request of an operator to this process, such as an eviction,
	// before it is answered, and must return soon. A program may write an audit log by it.
	// Requests that operators have the right to make are in the log anyway. If nil, there is
	// only the log.
	OnOperator func(OperatorAction)

	followed admission.Followed // SecretFile and DenyFile
}

// Detection says when a member is suspected to have failed. The zero value of each setting is
// a good default.
type Detection struct {
	// StartTimeout is how long the processes of Start and NewWorld may take to
	// start before they are suspected. If zero, 30 s. Under pleach run, one that has
	// ended before it started is suspected at once.
	StartTimeout time.Duration
	// HeartbeatInterval is how often a member sends a heartbeat to its two ring
	// neighbors, over connections that are there anyway. If zero, 300 ms, or a fifth
	// of SuspicionTimeout if that is less. All members use the same.
	HeartbeatInterval time.Duration
	// SuspicionTimeout is the time without a heartbeat after which a member's ring
	// neighbors suspect it, as with a stopped or hung process. It grows automatically where
	// members are slow. If zero, 1.5 s, or five times HeartbeatInterval if that is more; in a
	// World on several hosts 10 s; with AllowMinority, and in a World on one host, no
	// member is suspected for missing heartbeats. If negative, none is either.
	SuspicionTimeout time.Duration
	// Detectors report suspicions in addition to those from broken connections and
	// heartbeats: package detect/swim finds unreachable hosts, and
	// [detect.Feed] passes on reports of a scheduler. The group closes them. If empty,
	// connections and heartbeats are all.
	Detectors []detect.Detector
}

// Recovery says how this process returns to its group after a restart or a removal. With the
// zero value, it returns as a new member, when the program asks for it.
type Recovery struct {
	// DataDir is a directory for the vote of this member, so that the vote counts after a
	// restart: the group recovers automatically when a majority of the members of its last
	// view is back with their directories. A directory belongs to one process at a time. It
	// is made if it does not exist. If empty, a restarted process has no vote until it has
	// joined again, which takes a quorum of the others.
	DataDir string
	// Replace lets Join take the place of a live member with the same ID: that one ends
	// with [ErrReplaced]. If false, Join returns an [*IdentityInUseError]. A member
	// that is gone is replaced in either case.
	Replace bool
	// Rejoin makes this process join again automatically when the others have removed it
	// ([ErrEvicted]), and when it has left because its program was too slow ([ErrTooSlow])
	// and receives again. The [Group] continues, with handlers and subscriptions, and a [*GapError]
	// among its messages shows where some may be missing. Meanwhile calls that
	// need a membership return an error with the reason, and so does [View.Err]. If false, the
	// group ends then ([Group.Err]), until [Group.Rejoin].
	Rejoin bool
}

// Delivery selects what this process receives from its first view on, apart from the messages of
// other members. With the zero value, that is nothing.
type Delivery struct {
	// Echo has OnMessage called with this process's own broadcasts, too, or Messages yield
	// them, each at its place among those of the others; subscriptions do not. OnMessage may
	// then be called on the goroutine that broadcasts. A State implies it. If false, this
	// process does not receive its own.
	Echo bool
	// Handlers serve the requests of other members from the first view on, by name:
	// [Group.Handle] adds others. If nil, there are none before Handle.
	Handlers map[string]func(ctx context.Context, r Request) ([]byte, error)
	// Topics are the topics that this process subscribes to from its first view on.
	// [Group.Subscribe] returns the subscriptions, and makes others. If nil, there are none
	// before Subscribe.
	Topics []string
}

// Job is the settings of the processes of a job: [NewWorld]. The zero value of each setting
// is a good default.
type Job struct {
	// Respawned makes NewWorld take the place of the process that had this rank in a running
	// job: see [World.Admit]. If false, the launcher's word counts, as that of
	// pleach run --respawn.
	Respawned bool
	// QuorumTimeout is how long the calls of a World wait, after the quorum is lost,
	// for enough processes to be reachable again. Then the process leaves the job, and
	// its calls return a [*QuorumError]. If zero, 30 s.
	QuorumTimeout time.Duration
	// ProgressTimeout is how long the processes of a World wait in a call for one that is
	// alive and does not come, or does not answer, after most of them have come. Then they
	// have it removed by a view: its tasks are taken over, and its calls return
	// [ErrEvicted]. All processes use the same. If zero, what PLEACH_PROGRESS_TIMEOUT says
	// (pleach run --progress-timeout), or without a bound. It must be longer than any
	// process legitimately works between two calls.
	ProgressTimeout time.Duration
	// PollTime is how long a collective call of a World that waits for a message looks for
	// it on the sender's connection, or in the memory they share, before it sleeps. That
	// makes short calls faster and uses processor time. If zero, up to 1 ms, and a process
	// that other programs preempt meanwhile stops looking for a while. If negative, a call
	// sleeps at once. Connections with TLS are looked at only when they have shared memory.
	PollTime time.Duration
	// Network is what messages cost between the processes of a World, by which collective
	// calls select their algorithms: pleach-lab tune --calibrate prints it. All processes use
	// the same. Figures that are zero have defaults.
	Network collective.Network
	// LogCalls is for how many collective calls a process of a job keeps what it has
	// sent. If zero, 256. Beyond it, a call waits for the slowest process, and fails with
	// a [*collective.HoldError] if as many calls are held.
	LogCalls int
	// LogBytes is how much of that a process keeps, and one call more. If zero, 256 MiB.
	// Beyond it, the same happens.
	LogBytes int
}

// Limits bounds what a member keeps in memory and what it sends in one piece.
// The zero value of each limit is a good default.
type Limits struct {
	// MaxMessage is the longest message in bytes, below 4 GiB. If zero, 1 GiB. Members may
	// differ, as in a rolling restart that raises it: each sends at most what all members can
	// receive, and returns a [*MessageSizeError] for more. A process that can receive less than
	// the group sends is refused with a [*SettingError].
	MaxMessage int
	// KeepBytes is how much a member keeps to repair others' losses. Members that send
	// at the same time share it, apart from what some member has not received yet. In a
	// static group, it is kept of each sender. If zero, 16 MiB. Three quarters of it are
	// what all senders together may have in flight: sent, and not yet received by every
	// member.
	KeepBytes int
	// InboxBytes is how much may wait for the program to receive it, in all its
	// subscriptions together. If zero, 16 MiB. Beyond that, Overflow decides.
	InboxBytes int
	// Overflow selects the behavior when a program does not receive as fast as others
	// broadcast. If zero, [Block].
	Overflow Overflow
	// SlowTimeout is how long a program may receive nothing while its inbox is full.
	// If zero, 5 s. After that the process leaves its group with [ErrTooSlow], so
	// that it does not block the others any longer. So does a process that is starved
	// of CPU for as long while others wait for it. A static group waits for ever.
	SlowTimeout time.Duration
	// OutboxBytes is how much may wait to be sent; Broadcast blocks beyond it. If
	// zero, 4 MiB.
	OutboxBytes int
	// SendBytes bounds the messages by [Group.Send] to one member that its program has not
	// received yet, apart from one message; Send blocks beyond it. If zero, 1 MiB.
	SendBytes int
	// Requests is how many requests of this process may wait for replies; [Group.Request]
	// blocks beyond it. It is also how many requests of others this process serves at a
	// time, and how many more wait for that; others beyond it fail with [ErrOverloaded].
	// If zero, 256.
	Requests int
	// SharedBytes bounds the memory that a process shares with members on its host, on
	// Linux. Two of them that run as the same user exchange messages through it when they
	// have many, instead of through their connection, which stays. With TLS they do so
	// after its handshake, and the data in this memory is not encrypted. Beyond the limit,
	// the connection is used. If zero, 64 MiB in a World and none in a group, whose
	// broadcasts gain little by it. If negative, none.
	SharedBytes int
	// SegmentSize is the longest segment that a message is split into. If zero,
	// 64 KiB.
	SegmentSize int
	// InlineSize is the longest segment that a correction message carries instead
	// of only advertising it. If zero, 1 KiB.
	InlineSize int
}

// Overflow is what happens when a program does not receive as fast as others broadcast.
type Overflow int

const (
	// Block throttles the senders: Broadcast blocks, and no message is lost.
	Block Overflow = iota
	// Drop never blocks senders. A member that falls further behind than KeepBytes
	// loses messages, and gets a [*LostError]. All members use the same value.
	Drop
)

// ConfigError is returned when a Config contradicts itself or has a setting that
// the call would ignore.
type ConfigError struct {
	// Field is the setting's name, as "Security.TLS", and Reason says why it is refused.
	Field, Reason string
	// Err is the cause, such as [syscall.ENOSPC] for a directory on a full disk; nil: the value itself.
	Err error
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

func (e *ConfigError) Error() string { return fmt.Sprintf("Config.%s %s", e.Field, e.Reason) }

// mode is a way of using a Config.
type mode string

const (
	modeStart   mode = "Start"
	modeCreate  mode = "Create"
	modeJoin    mode = "Join"
	modeWorld   mode = "NewWorld"
	modeInspect mode = "Inspect"
)

// check refuses settings that contradict each other or have no effect in a call.
func (c *Config) check(m mode) error {
	together := m == modeStart || m == modeWorld // all members start together
	alone := m == modeCreate || m == modeJoin
	member := m != modeInspect
	tcp := c.Network.Transport == nil
	static := m == modeStart && (c.Static || !tcp && len(c.Addresses) == 0)
	views := member && !static
	group := views && m != modeWorld
	d, j, l := &c.Detection, &c.Job, &c.Limits
	for _, s := range []struct {
		field   string
		set, ok bool
		reason  string
	}{
		{"Addresses", len(c.Addresses) > 0, together, "is for Start and NewWorld, where all members start together"},
		{"Rank", c.Rank != 0, len(c.Addresses) > 0 || static &&
			!tcp, "needs Addresses, or Network.Size and Network.Transport"},
		{"Expect", c.Expect != 0, m == modeJoin, "is for Join: elsewhere the first member or the members are known"},
		{
			"Expect", c.Expect < 0 || c.Expect > membership.MaxSlots, false,
			fmt.Sprintf("is %d: write how many processes begin the group, at most %d", c.Expect, membership.MaxSlots),
		},
		{"Listen", c.Listen != "", alone, "is for Create and Join; otherwise Addresses say where this process listens"},
		{
			"Advertise", c.Advertise != "", alone,
			"is for Create and Join; otherwise Addresses say where this process is reached",
		},
		{"ID", c.ID != "", alone, "is for Create and Join; otherwise Addresses identify the members"},
		{"FailureDomain", c.FailureDomain != "", alone, "is for Create and Join; otherwise ranks are given"},
		{
			"Observer", c.Observer, m == modeJoin && !c.AllowMinority,
			"is for Join: voters begin a group; with AllowMinority no member counts",
		},
		{"Meta", c.Meta != "", views, "needs views, which carry it"},
		{"Meta", len(c.Meta) > membership.MaxMeta, false, fmt.Sprintf("has %d bytes: choose at most %d", len(c.Meta),
			membership.MaxMeta)},
		{"State", c.State != nil, group, "is for groups with views: a joiner gets it"},
		{"State", c.State != nil && l.Overflow == Drop, false, "needs every message, and Limits.Overflow is Drop"},
		{"Agree", len(c.Agree) > 0, group, "is for groups with views, except jobs"},
		{"Agree", agreeBytes(c.Agree) > maxAgree, false, fmt.Sprintf("is too long: at most %d bytes", maxAgree)},
		{"OnMessage", c.OnMessage != nil, member, "has no effect"},
		{"OnCurrent", c.OnCurrent != nil, !static && m != modeInspect, "is for groups with views"},
		{"OnView", c.OnView != nil, c.OnMessage != nil && c.State == nil &&
			!static, "is for OnMessage, in a group with views and without State"},
		{"Static", c.Static, m == modeStart, "is for Start: the members of a static group are known from the start"},
		{"AllowMinority", c.AllowMinority, views, "has no effect: a static group never stops"},
		{
			"Arbiter", c.Arbiter != nil, group && !c.AllowMinority,
			"is for groups with a quorum: jobs and static groups ask none, and with AllowMinority all continue",
		},
		{"Logger", c.Logger != nil, member, "has no effect"},

		{"Delivery.Echo", c.Delivery.Echo, group, "is for groups with views"},
		{"Delivery.Handlers", len(c.Delivery.Handlers) > 0, views, "needs views: a static group has no Request"},
		{"Delivery.Topics", len(c.Delivery.Topics) > 0, member, "has no effect"},
		{
			"Delivery.Topics", slices.ContainsFunc(c.Delivery.Topics, func(t string) bool { return !stream.ValidTopic(t) }),
			false, "has a name that no topic can have: see Group.Subscribe",
		},

		{
			"Network.Transport", !tcp, m == modeStart || m == modeWorld && len(c.Addresses) > 0,
			"is for Start, and for NewWorld together with Addresses",
		},
		{
			"Network.Size", c.Network.Size != 0, static && !tcp && len(c.Addresses) == 0,
			"is for Start with a Transport and without Addresses",
		},
		{"Network.Dial", c.Network.Dial != nil, tcp, "is for TCP: Transport replaces it"},
		{"Network.Shape", c.Network.Shape != topology.Shape{}, member, "has no effect"},

		{"Security.TLS", c.Security.TLS != nil, tcp, "is for TCP: Network.Transport replaces it"},
		{"Security.HostCertificates", c.Security.HostCertificates, c.Security.TLS != nil, "needs TLS"},
		{"Security.Secret", len(c.Security.Secret) > 0, tcp, "is for TCP: Network.Transport replaces it"},
		{
			"Security.Secret", len(c.Security.Secret) > 0 && len(c.Security.Secret) < admission.MinSecret, false,
			"is shorter than 16 bytes, so that it could be guessed",
		},
		{"Security.SecretFile", c.Security.SecretFile != "", len(c.Security.Secret) == 0 &&
			tcp, "replaces Secret, and is for TCP"},
		{"Security.DenyFile", c.Security.DenyFile != "", c.Security.TLS != nil &&
			!static, "needs TLS, which proves who a process is, and views"},
		{"Security.OnOperator", c.Security.OnOperator != nil, member, "has no effect"},

		{"Detection.StartTimeout", d.StartTimeout != 0, together && !static, "is for Start and NewWorld with views"},
		{
			"Detection", d.HeartbeatInterval != 0 || d.SuspicionTimeout != 0 || len(d.Detectors) > 0, views,
			"needs views: a static group suspects no member",
		},
		{"Detection.HeartbeatInterval", d.HeartbeatInterval < 0, false, "is negative"},
		{
			"Detection.SuspicionTimeout", d.SuspicionTimeout > 0 && d.SuspicionTimeout < 2*d.HeartbeatInterval, false,
			"is less than twice HeartbeatInterval: every lost heartbeat would be a suspicion",
		},

		{"Recovery.DataDir", c.Recovery.DataDir != "", alone, "is for Create and Join"},
		{
			"Recovery.Replace", c.Recovery.Replace, m == modeJoin,
			"is for Join: it takes the place of a member with the same ID",
		},
		{"Recovery.Rejoin", c.Recovery.Rejoin, group && tcp, "is for groups with views, over TCP"},

		{"Limits", *l != Limits{}, member, "has no effect"},
		{"Limits.SendBytes", l.SendBytes != 0, !static, "needs views: a static group has no Send"},
		{"Limits.SendBytes", l.SendBytes < 0, false, "is negative"},
		{"Limits.Requests", l.Requests != 0, !static, "needs views: a static group has no Request"},
		{"Limits.Requests", l.Requests < 0, false, "is negative"},
		{"Limits.SharedBytes", l.SharedBytes != 0, tcp, "is for TCP: Network.Transport replaces it"},

		{"Job", *j != Job{}, m == modeWorld, "is for NewWorld: only a job makes collective calls"},
		{"Job.Respawned", j.Respawned, tcp, "is for TCP: a process that comes back joins"},
		{"Job.QuorumTimeout", j.QuorumTimeout < 0, false, "is negative"},
		{"Job.ProgressTimeout", j.ProgressTimeout < 0, false, "is negative"},
		{"Job.LogCalls", j.LogCalls < 0, false, "is negative"},
		{"Job.LogBytes", j.LogBytes < 0, false, "is negative"},
		{"Job.Network", min(j.Network.Inside.Latency, j.Network.Inside.Overhead, j.Network.Between.Latency,
			j.Network.Between.Overhead) < 0, false, "has a negative figure"},
		{"Job.Network", min(j.Network.Inside.Bandwidth, j.Network.Between.Bandwidth) < 0, false, "has a negative bandwidth"},
	} {
		if s.set && !s.ok {
			return &ConfigError{Field: s.field, Reason: s.reason}
		}
	}
	return follow(c)
}
