package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Event is one line of a process's history. Which fields it has depends on Type.
type Event struct {
	Type string `json:"t"`
	At   int64  `json:"at"` // ns by the observer's clock

	View    uint64   `json:"view,omitempty"`    // view, deliver, receipt
	Members []Member `json:"members,omitempty"` // view, receipt
	Self    *Member  `json:"self,omitempty"`    // view
	Rank    int      `json:"rank,omitempty"`    // deliver: of the sender
	From    string   `json:"from,omitempty"`    // deliver: the process that has sent it
	Seq     int      `json:"seq,omitempty"`     // send, deliver, receipt
	Err     string   `json:"err,omitempty"`

	Op        int    `json:"op,omitempty"`  // call, return
	Key       int    `json:"key,omitempty"` // call, return; hold, release: the lock
	Write     bool   `json:"write,omitempty"`
	Value     string `json:"value,omitempty"`
	Partition int    `json:"partition,omitempty"` // serve
	Token     uint64 `json:"token,omitempty"`     // serve, hold, release
	Until     int64  `json:"until,omitempty"`     // serve, hold, and faults: the end
	// receipt: the messages up to this one may be missing, as an error has said
	Since int   `json:"since,omitempty"`
	Hosts []int `json:"hosts,omitempty"` // fault
}

// The types of events.
const (
	evView    = "view"
	evSend    = "send"
	evDeliver = "deliver"
	evNotice  = "notice" // of messages that were lost, or may be missing
	evReceipt = "receipt"
	evCall    = "call"
	evReturn  = "return"
	evServe   = "serve"
	evHold    = "hold" // a lock
	evRelease = "release"
	evOffer   = "offer" // of an initial state, by its version (Seq)
	evBegin   = "begin" // the initial state that the process has got (Seq, From)
	evEnd     = "end"   // the process has ended in order
	evFault   = "fault" // what the nemesis did
)

// Member is a process in a view.
type Member struct {
	Rank        int    `json:"r"`
	ID          string `json:"id"`
	Incarnation uint64 `json:"i"`
}

// history is all that one process has seen, in its order.
type history struct {
	process string // ID and number of the start
	events  []Event
	group   int  // which one it was in: a planned stop of all ends a group
	ended   bool // in order, so that what it has not seen it never would have
	killed  bool // known of jobs only
}

// host returns the host of the process: see memberID.
func (h *history) host() int {
	id, _, _ := strings.Cut(h.process, "#")
	n, err := strconv.Atoi(strings.TrimPrefix(id, "m"))
	if err != nil {
		return -1
	}
	return n
}

// journal writes a history. A killed process leaves what it had written, so nothing is buffered.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &journal{file: f}, err
}

func (j *journal) write(e Event) {
	if e.At == 0 {
		e.At = observe()
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // an Event has nothing that cannot be written
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.file.Write(append(b, '\n'))
}

// readHistory reads what a process has written. The last line of a killed one may be cut short.
func readHistory(process, path string) (*history, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := &history{process: process}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			h.events = append(h.events, e)
			h.ended = e.Type == evEnd
		}
	}
	return h, lines.Err()
}
