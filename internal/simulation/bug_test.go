package simulation

// Bug is a mistake of a driver that tests plant, to see that seeds find it.
type Bug int

// The bugs that are planted in what drives the machines.
const (
	_                     Bug = iota
	voteToldBeforeSaved       // frames do not wait until a vote is on the disk
	memberBeginsUnsaved       // a member says something before its place is on the disk
	unsyncedReplacesSaved     // there is one file: what is not synced replaces what was
	olderFileCounts           // what only follows the view counts, although a vote was saved since
	addressKept               // members are looked for at the addresses in the view only
)

// has reports whether a bug is planted.
func (s *Simulation) has(b Bug) bool { return s.options.Bug == b }
