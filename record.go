package pleach

import (
	"errors"
	"io"
	"time"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/internal/p2p"
	"github.com/pleach-go/pleach/internal/record"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// inputs are the calls that change a member: those of [member.Machine], or of a
// [record.Recorder] in front of it. All go through it, so a recording has all. Without
// one, nothing stands in between.
type inputs interface {
	node.Protocol
	node.BufferProvider // the machine provides the memory for long frames, too
	Start(now protocol.Time)
	Settle(now protocol.Time)
	Saved(now protocol.Time, err error)
	Report(now protocol.Time, r member.Report)
	SetImpaired(now protocol.Time, impaired bool)
	Join(now protocol.Time, candidate membership.Member, replace bool, answer func(member.JoinAnswer))
	Leave(now protocol.Time)
	SetMeta(now protocol.Time, meta string) error
	SetSynced(now protocol.Time)
	Removed(now protocol.Time, view uint64, holder *membership.Member)
	RaiseVersion(now protocol.Time, version uint16) error
	ForceView(now protocol.Time, ranks []protocol.Rank) error
	Learn(now protocol.Time, d membership.Decisions) error
	Trace()
	Write(payload []byte, remaining int) error
	WriteTopic(topic string, payload []byte, remaining int) error
	Abandon()
	FlushBatch()
	Poll(now protocol.Time) uint64
	DeliverEach(now protocol.Time, most int, take func(*stream.Message))
	Subscribe(topic string) (id uint64)
	Unsubscribe(now protocol.Time, id uint64)
	DeliverTopicEach(now protocol.Time, id uint64, most int, take func(*stream.Message))
	SendDirect(to protocol.Rank, head, body []byte, release func()) error
	DeliverDirect() (p2p.Message, bool)
	FlushDirect() (idle bool)
}

// makeMachine makes the machine, and what records it if that is asked for.
func (g *session) makeMachine(c member.Config) (err error) {
	if g.config.RecordBytes == 0 {
		g.machine, err = member.New(c)
		g.inputs = g.machine
		return err
	}
	if g.recorder, err = record.New(c, time.Now().UnixNano(), g.config.RecordBytes); err != nil {
		return err
	}
	g.machine, g.inputs = g.recorder.Machine, g.recorder
	return nil
}

// WriteRecording writes what has come into this member since it began, up to
// Config.RecordBytes. The command pleach-lab replay runs the same protocols over it, to the
// same state. A recording contains the messages of the group. WriteRecording may be called
// more than once, and after Close. It returns an error if nothing was recorded: without
// RecordBytes, and in a member that voted again after a restart (Config.DataDir).
func (g *Group) WriteRecording(w io.Writer) error { return g.session().writeRecording(w) }

func (g *session) writeRecording(w io.Writer) error {
	switch {
	case g.config.RecordBytes == 0:
		return g.wrap("write recording", errors.New("nothing was recorded: set Config.RecordBytes"))
	case g.recorder == nil:
		return g.wrap("write recording", errors.New("nothing was recorded: this member has taken its seat again after a restart"))
	}
	var s *record.Snapshot
	if g.node.Do(func(protocol.Time) { s = g.recorder.Snapshot() }) != nil {
		s = g.recorder.Snapshot() // the node is closed: nothing changes the member any more
	}
	_, err := s.WriteTo(w)
	return g.wrap("write recording", err)
}
