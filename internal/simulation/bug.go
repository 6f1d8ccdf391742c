package simulation

// Bug is a mistake of a driver that tests plant, to see that seeds find it.
type Bug int

// The bugs that are planted in what drives the machines.
const (
	_                     Bug = iota
	voteToldBeforeSaved       // frames do not wait until a vote is on the disk
	nonceNotSaved             // the nonce is not saved before the process asks to join
	memberBeginsUnsaved       // a member says something before its place is on the disk
	unsyncedReplacesSaved     // there is one file: what is not synced replaces what was
	seatVotesOn               // a seat whose place is given up still votes
	refusalEndsSeat           // a seat believes the refusal of any process
	addressKept               // members are looked for at the addresses in the view only
	placeOfLeftKept           // a member that has left, or was removed, keeps its place
)

// has reports whether a bug is planted.
func (s *Simulation) has(b Bug) bool { return s.options.Bug == b }
