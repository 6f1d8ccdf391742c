package leases

// Tables that begin empty because no member knew the leases. A holder from before may still hold
// one of them, until its TTL is over. The table cannot know that TTL, so it waits for the TTL that
// the next holder asks for, and for a grace at least: holders of one lease use the same TTL, or one
// that is not above the grace.

// beginning is how a table began.
type beginning struct {
	// ID differs from that of every other table that commands of the same processes can reach.
	ID uint64 `json:"id"`
	// Grace is the least time that the table waits.
	Grace Time `json:"grace"`
	// Passed is how long a process has seen the table for: leases with a TTL of up to that, which
	// were held before the table began, have ended.
	Passed Time `json:"passed"`
}

// Begin says that the table is empty because no member knew the leases. All processes call it at
// the same place in the order of commands, with the same ID and grace.
func (t *Table) Begin(now Time, id uint64, grace Time) {
	t.begun, t.began = &beginning{ID: id, Grace: grace}, now
}

// term is how long the table waits before it grants a lease of a TTL.
func (b *beginning) term(ttl Time) Time { return max(ttl, b.Grace) }

// early reports whether a holder from before the table may hold a lease.
func (t *Table) early(ttl Time) bool { return t.begun != nil && t.begun.Passed < t.begun.term(ttl) }

// Early returns how long this process has to wait until all leases from before the table have
// ended, by this process's clock. It reports false if that is known already.
func (t *Table) Early(now, ttl Time) (wait Time, early bool) {
	if !t.early(ttl) {
		return 0, false
	}
	return t.remaining(t.began, t.begun.term(ttl), now), true
}

// elapsed is the command that tells all members that a time has passed since the table began. It
// is one of this table alone.
func (t *Table) elapsed(ttl Time) Command {
	return Command{Op: Elapsed, Entry: Entry{Token: t.begun.ID, TTL: t.begun.term(ttl)}}
}

// elapse applies an Elapsed command.
func (t *Table) elapse(c *Command) Verdict {
	if t.begun == nil || t.begun.ID != c.Token {
		return No
	}
	t.begun.Passed = max(t.begun.Passed, c.TTL)
	return OK
}
