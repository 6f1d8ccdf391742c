package collective

// Progress is what a process does in a communicator, as [Comm.Progress] returns it and
// pleach ps shows it. Ranks are those of the world that pleach.NewWorld has returned, also
// in communicators derived by [Comm.Shrink]. Tasks are the communicator's own.
type Progress struct {
	// World names a communicator derived by Shrink. The outermost has no name.
	World string `json:"world,omitempty"`
	Rank  int    `json:"rank"`
	Size  int    `json:"size"` // of the communicator
	View  uint64 `json:"view"`
	// Calls and Agreements (Agree and Shrink) count those begun.
	Calls      uint64 `json:"calls"`
	Agreements uint64 `json:"agreements"`
	Tasks      []int  `json:"tasks"`
	Failed     []int  `json:"failed,omitempty"`
	Revoked    bool   `json:"revoked,omitempty"`
	// Current are the calls in progress, the earliest first.
	Current []CallStatus `json:"doing,omitempty"`
	// Last is the last completed call.
	Last *CallStatus `json:"last,omitempty"`
}

// CallStatus is a call in progress, or a completed one.
type CallStatus struct {
	Call uint64 `json:"call"`
	// Agreement says which Agree or Shrink it is, from 1. If zero, it is neither.
	Agreement uint64  `json:"agreement,omitempty"`
	Name      string  `json:"name"`
	What      string  `json:"what"`
	Seconds   float64 `json:"seconds"` // since it began, or was completed, to within 20 ms
	// WaitsFor are the ranks whose messages the call waits for now.
	WaitsFor []int  `json:"waits_for,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Progress returns what this process does, in this communicator and in those derived from
// it. It lists at most 64 calls, ranks and tasks each, and the 16 latest communicators.
func (c Comm) Progress() []Progress {
	var all []Progress
	for _, p := range core(c).Progress() {
		q := Progress{
			World: p.World, Rank: p.Rank, Size: p.Size, View: p.View, Calls: p.Calls,
			Agreements: p.Agreements, Tasks: p.Tasks, Failed: p.Failed, Revoked: p.Revoked,
			Last: (*CallStatus)(p.Last),
		}
		for _, s := range p.Current {
			q.Current = append(q.Current, CallStatus(s))
		}
		all = append(all, q)
	}
	return all
}
