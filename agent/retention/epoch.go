package retention

import "slices"

// A log may outlive its agent, in files. Each start of the agent is an epoch of the log: IDs
// name it, so that a subscriber which has got messages that the files have lost is not taken
// for one that has got those which are there now instead.

// Epoch is a start of the agent: the messages from First on, up to the next one.
type Epoch struct {
	Name  string `json:"name"`
	First uint64 `json:"first"`
}

// maxEpochs is the number of known epochs that have no retained messages. A subscriber
// from before them has an ID that says nothing, and all retained messages are newer than the ID.
const maxEpochs = 64

// maxRestored bounds the epochs of a state that is restored.
const maxRestored = 1 << 20

// State is what the messages of a log build on: where they are, and what was counted before
// them.
type State struct {
	Epochs []Epoch           `json:"epochs"`
	Next   uint64            `json:"next"`
	Topics map[string]uint64 `json:"topics,omitempty"`
	Others uint64            `json:"others,omitempty"`
	Direct uint64            `json:"direct,omitempty"`
}

// State returns what the next message builds on.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{
		Epochs: append([]Epoch(nil), l.epochs...), Next: l.next(), Topics: make(map[string]uint64),
		Others: l.others.added, Direct: l.direct.added,
	}
	for topic, c := range l.topics {
		s.Topics[topic] = c.added
	}
	return s
}

// maxNumber bounds the numbers of messages.
const maxNumber = 1 << 62

// Restore begins the log at a state, unless it is there already. Nothing from before is retained
// otherwise.
func (l *Log) Restore(s *State) error {
	if len(s.Epochs) == 0 || len(s.Epochs) > maxRestored || s.Next == 0 || s.Next > maxNumber {
		return ErrMalformed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs = s.Epochs
	if l.retained.Len() > 0 && l.next() == s.Next {
		return nil
	}
	for l.retained.Len() > 0 {
		l.drop()
	}
	l.first = s.Next
	l.others, l.direct = counter{s.Others, s.Others}, counter{s.Direct, s.Direct}
	l.topics = make(map[string]*counter)
	for topic, n := range s.Topics {
		if len(l.topics) < l.limits.Topics {
			l.topics[topic] = &counter{n, n}
		}
	}
	return nil
}

// Begin begins an epoch.
func (l *Log) Begin(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs = append(l.epochs, Epoch{name, l.next()})
	var kept []Epoch
	others := 0
	for i := len(l.epochs) - 1; i >= 0; i-- { // the newest first
		end := l.next()
		if i+1 < len(l.epochs) {
			end = l.epochs[i+1].First
		}
		if e := l.epochs[i]; e.First < end && end > l.first {
			kept = append(kept, e)
		} else if others < maxEpochs {
			others++
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	l.epochs = kept
}

// Epoch returns the name of the present epoch, which no other log has.
func (l *Log) Epoch() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs[len(l.epochs)-1].Name
}

// epochOf is the epoch of a message, within l.mu: the last one that begins before it.
func (l *Log) epochOf(number uint64) (name string) {
	for i := range l.epochs {
		if e := &l.epochs[i]; i == 0 || e.First <= number {
			name = e.Name
		}
	}
	return name
}

// endOf returns the number behind the last message of an epoch, within l.mu.
func (l *Log) endOf(epoch string) (end uint64, known bool) {
	for i := range l.epochs {
		switch {
		case l.epochs[i].Name != epoch:
		case i+1 < len(l.epochs):
			return l.epochs[i+1].First, true
		default:
			return l.next(), true
		}
	}
	return 0, false
}
