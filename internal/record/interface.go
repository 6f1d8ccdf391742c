package record

import (
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/p2p"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Inputs are the calls that change a member, apart from those of a node: those of [member.Machine], or of a
// [Recorder] in front of it. All go through it, so a recording has all. Without
// one, nothing stands in between.
type Inputs interface {
	Start(now protocol.Time)
	Settle(now protocol.Time)
	Saved(now protocol.Time, err error)
	Report(now protocol.Time, r member.Report)
	SetImpaired(now protocol.Time, impaired bool)
	Join(now protocol.Time, candidate membership.Member, replace bool, answer func(member.JoinAnswer))
	Leave(now protocol.Time)
	SetMeta(now protocol.Time, meta string) error
	SetSynced(now protocol.Time)
	Received(now protocol.Time)
	Removed(now protocol.Time, view uint64, holder *membership.Member)
	RaiseVersion(now protocol.Time, version uint16) error
	Evict(now protocol.Time, rank protocol.Rank, incarnation uint64, cause membership.Cause) error
	ForceView(now protocol.Time, ranks []protocol.Rank) error
	Learn(now protocol.Time, d membership.Decisions) error
	Trace()
	Write(payload []byte, remaining int) error
	WriteTopic(topic string, payload []byte, remaining int) error
	Abandon()
	FlushBatch()
	Poll(now protocol.Time) uint64
	PollProcessed(now protocol.Time) uint64
	NoteProcessed(now protocol.Time, id, position uint64)
	DeliverEach(now protocol.Time, most int, take func(*stream.Message))
	Subscribe(topic string) (id uint64)
	Unsubscribe(now protocol.Time, id uint64)
	DeliverTopicEach(now protocol.Time, id uint64, most int, take func(*stream.Message))
	SendDirect(to protocol.Rank, head, body []byte, release func()) error
	DeliverDirect() (p2p.Message, bool)
	FlushDirect() (idle bool)
}
