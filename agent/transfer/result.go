package transfer

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// Outcome is what has become of a file at a member.
type Outcome string

// Outcomes.
const (
	Done    Outcome = "done"    // the member has received the file
	Present Outcome = "present" // the member had it already
	Failed  Outcome = "failed"  // the member cannot have it, for the reason in Error
	Gone    Outcome = "gone"    // the member has left the group
	Unknown Outcome = "unknown" // the copy was interrupted before
)

// MemberResult is what has become of a file at one member.
type MemberResult struct {
	Rank    int     `json:"rank"`
	ID      string  `json:"id"`
	Zone    string  `json:"zone,omitempty"` // in a copy to a fleet
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
}

// Result is what a copy has done.
type Result struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
	Size int64  `json:"size"`
	// Digest is the content address of the file: the SHA-256 of the SHA-256 of its chunks.
	Digest string `json:"digest"`
	Chunks int    `json:"chunks"`
	// Broadcast counts chunks that were broadcast, and Sent those that were sent to a
	// single member.
	Broadcast int `json:"broadcast"`
	Sent      int `json:"sent"`
	// Members are in order of zone and rank.
	Members []MemberResult `json:"members"`
	// FailedZones are those of a fleet in which the copy was not completed.
	FailedZones []ZoneFailure `json:"failed_zones,omitempty"`
}

// ZoneFailure says why a copy was not completed in a zone of a fleet.
type ZoneFailure struct {
	Zone  string `json:"zone"`
	Error string `json:"error"`
}

// Add adds what a copy has done in a zone of a fleet, and the error that has ended it there.
func (r *Result) Add(zone string, of *Result, err error) {
	switch {
	case r.Digest == "":
		r.Digest, r.Chunks = of.Digest, of.Chunks
	case err == nil && of.Digest != r.Digest:
		err = errors.New("the file has arrived with another content")
	}
	r.Broadcast, r.Sent = r.Broadcast+of.Broadcast, r.Sent+of.Sent
	for _, m := range of.Members {
		m.Zone = zone
		r.Members = append(r.Members, m)
	}
	if err != nil {
		r.FailedZones = append(r.FailedZones, ZoneFailure{zone, err.Error()})
	}
}

// Count counts the members with an outcome.
func (r *Result) Count(o Outcome) (n int) {
	for i := range r.Members {
		if r.Members[i].Outcome == o {
			n++
		}
	}
	return n
}

// Error says which members cannot have the file, or is nil.
func (r *Result) Error() error {
	var first *MemberResult
	for i := range r.Members {
		if m := &r.Members[i]; m.Outcome == Failed && first == nil {
			first = m
		}
	}
	switch {
	case len(r.FailedZones) > 0:
		z := &r.FailedZones[0]
		return fmt.Errorf("%s is not complete in %d zones; zone %s: %s", r.Name, len(r.FailedZones), z.Zone, z.Error)
	case first == nil:
		return nil
	}
	return fmt.Errorf("%d of %d members have not got %s; rank %d: %s", r.Count(Failed), len(r.Members), r.Name, first.Rank,
		first.Error)
}

// Progress is how far a copy is.
type Progress struct {
	// Of the Total bytes that members lack, Sent are on their way. Total grows when members
	// join.
	Sent  int64 `json:"sent"`
	Total int64 `json:"total"`
	// Of the Members, Settled have the file or cannot have it.
	Settled int `json:"settled"`
	Members int `json:"members"`
}

func (h Hash) String() string { return hex.EncodeToString(h[:]) }
