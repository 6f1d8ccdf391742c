package api

import (
	"net/http"
	"time"

	"github.com/pleach-go/pleach/fleet"
)

// Fleet is what an agent knows of its fleet. Zones are not agreed upon: each tells about
// itself.
type Fleet struct {
	Name string    `json:"name"`
	Zone string    `json:"zone"` // this agent's
	Time time.Time `json:"time"`
	// Zones are those that are known, by name.
	Zones []Zone `json:"zones"`
}

// Zone is a zone of a fleet.
type Zone struct {
	Zone string `json:"zone"`
	// Members counts the members of View. Healthy says that the zone had a quorum and suspected
	// no member. All three are as old as Seconds says, or -1 if the zone has never told.
	Members int     `json:"members"`
	View    uint64  `json:"view"`
	Healthy bool    `json:"healthy"`
	Seconds float64 `json:"seconds"`
	// Error is why the zone has told no more, and the rest is empty then.
	Error     string     `json:"error,omitempty"`
	Delegates []Delegate `json:"delegates"`
	// Links lead to the other zones, as the lead of this one sees them.
	Links []fleet.Link `json:"links"`
}

// Delegate is a member of a zone that is in the backbone.
type Delegate struct {
	MemberRef
	// Lead says that it sends the messages of its zone to others.
	Lead bool `json:"lead"`
}

// fleet tells about the zones.
func (s *Server) fleet(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel, err := bounded(r)
	if err != nil {
		return err
	}
	defer cancel()
	status, err := s.agent.Fleet(ctx)
	return reply(w, status, err)
}
