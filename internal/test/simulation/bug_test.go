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

	stateTakenEarly   // a state is taken where a view is installed, before the program has its messages
	stateLabeledLater // a state counts from the next view on
	choiceForgotten   // nobody hears which state a group begins with

	verdictIgnored    // half continues whatever the arbiter says
	verdictForAnyView // an answer of the arbiter counts for any view

	unsafeOrder         // members deliver what a majority may not have
	acknowledgedEarly   // members acknowledge what they have not received
	sessionForgets      // a client that comes back has another name, and sends its commands again
	markOfAnother       // a member takes a snapshot at any mark
	knowledgeUnheard    // a leader begins anew although a member knows the order
	leaseByOneClock     // a lease is taken over before its holder's clock has ended it
	leaseFromTheReply   // a holder counts the TTL from when it learns that it holds the lease
	leaseFromEmptyTable // a table that begins empty gives a lease at once
	tokensWithoutFloor  // tokens begin again with each group
	tokensByOneFloor    // a table of leases begins with the floor of one process alone
	servesBeforeHandoff // an owner does not wait for the one before
	readyByMembership   // a restarted process counts as ready before it has the state
	leavesAtOnce        // a process leaves without handing over
)

// has reports whether a bug is planted.
func (s *Simulation) has(b Bug) bool { return s.options.Bug == b }
