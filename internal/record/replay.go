package record

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Result is where a replay ends.
type Result struct {
	// At is the time of the last input, since the member began. Inputs counts those that
	// were replayed.
	At     protocol.Time
	Inputs int
	// Complete says that the replay came to the end of the recording, with the same Hash.
	Complete bool
	State    State
	Hash     uint32
}

// DivergedError says that a replay did not do what the recorded member did.
type DivergedError struct {
	// Input is the number of the input after which they differ, What its kind and At its
	// time since the member began.
	Input int
	What  string
	At    protocol.Time
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("the replay differs from the recorded member after input %d (%s) at %.6f s: the machine is not of the same version, or is not deterministic", e.Input, e.What, float64(e.At)/1e9)
}

// replay is a machine and what comes into it.
type replay struct {
	*Recorder
	inputs  decoder
	last    input
	count   int
	buffers map[protocol.Rank][]byte // lent by ReceiveBuffer
	watch   watch
}

// Replay makes the member again, and has it take the inputs, until a time or, if that is
// Never, to the end. It calls tell, unless that is nil, with what happens.
func (r *Recording) Replay(until protocol.Time, tell func(Event)) (*Result, error) {
	p := &replay{
		Recorder: &Recorder{over: &input{}}, // nothing is recorded again
		inputs:   decoder{left: r.inputs}, buffers: make(map[protocol.Rank][]byte),
	}
	c, err := r.Setup.config()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	p.watch.attach(p, &c, tell)
	if r.Setup.Durable {
		c.Save = func([]byte, bool) {}
	}
	if err := p.begin(c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	complete, err := p.run(until)
	if err != nil {
		return nil, err
	}
	return &Result{At: p.last.at, Inputs: p.count, Complete: complete, State: p.State(), Hash: p.Hash()}, nil
}

// run takes the inputs.
func (p *replay) run(until protocol.Time) (complete bool, err error) {
	for {
		before := p.inputs
		in, err := p.inputs.next()
		switch {
		case err != nil:
			return false, fmt.Errorf("%w: %w", ErrMalformed, err)
		case in.kind == end:
			return true, p.compare(in.chain, p.Hash())
		case in.at > until:
			p.inputs = before
			return false, nil
		}
		if err := p.compare(in.chain, p.chain); err != nil {
			return false, err
		}
		p.last, p.now = in, in.at
		p.apply(&in)
		p.count++
		p.watch.look(&in)
	}
}

// compare compares checksums after the last input.
func (p *replay) compare(recorded, replayed uint32) error {
	if recorded == replayed {
		return nil
	}
	return p.diverged()
}

// diverged says that the last input had another effect.
func (p *replay) diverged() error {
	return &DivergedError{Input: p.count - 1, What: p.last.kind.String(), At: p.last.at}
}

var errNotSaved = errors.New("record: the state was not saved then")

// apply makes one call. The file was checked.
func (p *replay) apply(in *input) {
	switch now := in.at; in.kind {
	case start:
		p.Start(now)
	case settle:
		p.Settle(now)
	case receive:
		_ = p.Receive(now, in.peer, in.data) // that it was refused is compared
	case receiveBuffer:
		p.buffers[in.peer] = p.ReceiveBuffer(in.peer, in.data, int(in.number))
	case bufferFilled:
		head, body := in.data[:in.number], in.data[in.number:]
		copy(p.buffers[in.peer], body)
		delete(p.buffers, in.peer)
		_ = p.BufferFilled(now, in.peer, head, body)
	case up:
		p.Up(now, in.peer)
	case down:
		p.Down(now, in.peer)
	case writable:
		p.Writable(now, in.peer)
	case next:
		p.Next(now)
	case sendFailed:
		p.SendFailed(now, in.number != 0)
	default:
		p.applyCall(in)
	}
}

// applyCall makes a call that does not come from the network.
func (p *replay) applyCall(in *input) {
	switch now := in.at; in.kind {
	case reported:
		p.Report(now, in.report())
	case setImpaired:
		p.SetImpaired(now, in.number != 0)
	case join:
		p.Join(now, decoded[membership.Member](in.data), in.number != 0, nil)
	case leave:
		p.Leave(now)
	case removed:
		p.Removed(now, in.number, decoded[*membership.Member](in.data))
	case forceView:
		_ = p.ForceView(now, decoded[[]protocol.Rank](in.data))
	case learn:
		d, _ := membership.DecodeDecisions(in.data) // it was checked
		_ = p.Learn(now, d)
	case write:
		_ = p.Write(in.data, int(in.number))
	case abandon:
		p.Abandon()
	case flushBatch:
		p.FlushBatch()
	case poll:
		p.Poll(now)
	case pollProcessed:
		p.PollProcessed(now)
	case noteProcessed:
		p.NoteProcessed(now, uint64(in.peer), in.number)
	case deliver:
		p.Deliver(now)
	case sendDirect:
		_ = p.SendDirect(in.peer, in.data[:in.number], in.data[in.number:], nil)
	case deliverDirect:
		p.DeliverDirect()
	case flushDirect:
		p.FlushDirect()
	case setMeta:
		_ = p.SetMeta(now, string(in.data))
	case received:
		p.Received(now)
	case setSynced:
		p.SetSynced(now)
	case saved:
		var err error
		if in.number != 0 {
			err = errNotSaved
		}
		p.Saved(now, err)
	case writeTopic:
		end := 1 + int(in.data[0])
		_ = p.WriteTopic(string(in.data[1:end]), in.data[end:], int(in.number))
	case subscribe:
		p.Subscribe(string(in.data))
	case unsubscribe:
		p.Unsubscribe(now, in.number)
	case deliverTopic:
		p.DeliverTopic(now, in.number)
	case trace:
		p.Trace()
	case evict:
		_ = p.Evict(now, in.peer, in.number, membership.Cause(in.data[0]))
	case raiseVersion:
		_ = p.RaiseVersion(now, uint16(in.number))
	}
}

// report is the report in an input.
func (in *input) report() member.Report {
	r := decoded[recordedReport](in.data)
	report := member.Report{Rank: in.peer, Incarnation: r.Incarnation, Alive: r.Alive, Silent: r.Silent}
	if r.Cause != "" {
		report.Cause = errors.New(r.Cause)
	}
	return report
}

// decoded decodes what was checked.
func decoded[T any](b []byte) (v T) {
	_ = json.Unmarshal(b, &v)
	return v
}
