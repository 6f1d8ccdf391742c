package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/backfill"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/fleet"
)

// Messages to the fleet have numbers of their origins. The store takes each once, and what is
// missing before one it gets from other agents first, as package backfill decides.

// fleetLogName is the name of requests for messages to the fleet, to agents of the zone and to
// other zones.
const fleetLogName = "agent/fleet-log"

const (
	maxZonesTold = 3 // zones that are asked for what was missed: those that were heard last
	// A zone that has restarted from scratch has not met the others yet. What they know is looked for again,
	// for a while.
	lookAgain = 3 * time.Second
	maxLooks  = 10
)

// attached is a membership in a fleet, as the store knows it.
type attached struct {
	fleet      *fleet.Fleet
	name, zone string // of the fleet, and of the agent's zone
	looks      int    // how often it was looked again
}

// positions are those at which the membership has begun.
func (f *attached) positions() (list []backfill.Sent) {
	for _, p := range f.fleet.Before() {
		list = append(list, backfill.Sent{
			Origin: backfill.Origin{Zone: p.Zone, ID: p.ID, Incarnation: p.Incarnation},
			Seq:    p.Seq,
		})
	}
	return list
}

// heard are the other zones that were heard last.
func (f *attached) heard() (zones []string) {
	list := slices.DeleteFunc(f.fleet.Zones(), func(z fleet.ZoneSummary) bool { return z.Zone == f.zone })
	slices.SortFunc(list, func(a, b fleet.ZoneSummary) int { return cmp.Compare(a.Age, b.Age) })
	for _, z := range list[:min(len(list), maxZonesTold)] {
		zones = append(zones, z.Zone)
	}
	return zones
}

// enterFleet fills what was missed before a membership in the fleet.
func (s *store) enterFleet(ctx context.Context, f *attached) {
	if f.looks > 0 && s.fleet != f {
		return // it has ended since
	}
	s.fleet = f
	s.mu.Lock()
	known := s.origins.Fleet() != ""
	fill := s.origins.Enter(f.name, f.fleet.Born(), f.positions(), s.limits)
	s.mu.Unlock()
	if fill != nil {
		s.fillFleet(ctx, fill, "while the agent was not in the fleet")
		return
	}
	if !known && s.again { // the files are of a version that has not numbered them
		s.publish([]retention.Message{
			{Gap: "the agent was not in the fleet for a while: what was sent to the fleet meanwhile", Time: time.Now()},
		})
	}
	s.saveSnapshot()
}

// takeFleet takes in a message to the fleet behind a batch, which it returns with the message. A
// message that cannot be placed now is left: it is filled in the next membership.
func (s *store) takeFleet(ctx context.Context, a *arrival, batch []retention.Message) []retention.Message {
	at := backfill.SentOf(&a.message)
	if at.Seq == 0 || s.origins.Has(at) {
		return batch
	}
	if hole := s.origins.Before(at, a.lost); hole.First <= hole.Last {
		s.publish(batch)
		batch = nil
		of := fmt.Sprintf("by %s in zone %s", at.ID, at.Zone)
		if !s.fillFleet(ctx, backfill.NewFleetFill([]backfill.Hole{hole}, s.limits), of) {
			return nil
		}
	}
	if a.lost > 0 {
		return batch
	}
	s.mu.Lock()
	s.origins.Reached(at)
	s.mu.Unlock()
	return append(batch, a.message)
}

// fillFleet fills holes: what other agents have comes behind a notice of what they have not. It
// reports false if the membership or the agent ends before that is known.
func (s *store) fillFleet(ctx context.Context, fill *backfill.FleetFill, sent string) bool {
	filling, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	s.setCallOff(cancel)
	s.askFleet(filling, fill)
	s.setCallOff(nil)
	r := fill.Result()
	s.ended = ctx.Err() != nil
	if s.ended || (r.Missing > 0 || r.Uncertain) && s.fleet.fleet.Err() != nil {
		return false
	}
	if f := s.fleet; r.Uncertain && f.looks < maxLooks {
		f.looks, r.Uncertain, r.Born = f.looks+1, false, 0 // it is not known yet
		time.AfterFunc(lookAgain, func() { s.push(arrival{joined: f}) })
	}
	var batch []retention.Message
	if r.Missing > 0 || r.Uncertain {
		reason := "sent to the fleet " + sent + ": no agent that answers has them any more"
		if r.Uncertain {
			reason = "sent to the fleet " + sent + ": no other zone answers"
		}
		batch = append(batch, retention.Message{Gap: reason, Missing: r.Missing, Time: time.Now()})
	}
	batch = append(batch, r.Messages...)
	if len(batch) > 0 {
		s.logger.Info("filled what was missed of the fleet", "messages", len(r.Messages), "missing", r.Missing,
			"uncertain", r.Uncertain)
	}
	s.publish(batch)
	s.mu.Lock()
	s.origins.Filled(r)
	s.mu.Unlock()
	s.saveSnapshot()
	return true
}

func (s *store) setCallOff(cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callOff = cancel
}

// askFleet asks agents of the zone and other zones.
func (s *store) askFleet(ctx context.Context, fill *backfill.FleetFill) {
	f := s.fleet.fleet
	g := f.Zone()
	for _, zone := range s.fleet.heard() {
		fill.AddZone(zone)
	}
	known := make(map[process]bool)
	look := func() {
		v := g.View()
		for _, m := range agentsOf(&v, g.Rank()) {
			if p := (process{m.ID, m.Incarnation}); !known[p] {
				known[p] = true
				fill.Add(backfill.Source{Rank: m.Rank})
			}
		}
	}
	drive(ctx, s.logger, fill, look, func(of backfill.Source) error {
		reply, err := askFleetLog(ctx, f, of, fill.Request())
		if err == nil {
			fill.Answer(reply)
		}
		return err
	})
}

// askFleetLog asks an agent of the zone, or another zone, for a page.
func askFleetLog(ctx context.Context, f *fleet.Fleet, of backfill.Source,
	r *backfill.FleetRequest,
) (*backfill.FleetReply, error) {
	question, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var b []byte
	if of.Zone == "" {
		ctx, cancel := context.WithTimeout(ctx, pageTimeout)
		defer cancel()
		b, err = f.Zone().Request(ctx, pleach.Member{Rank: of.Rank}, fleetLogName, question)
	} else {
		ctx, cancel := context.WithTimeout(ctx, zoneTimeout)
		defer cancel()
		b, err = f.Request(ctx, of.Zone, fleetLogName, question)
	}
	if err != nil {
		return nil, err
	}
	reply := new(backfill.FleetReply)
	return reply, json.Unmarshal(b, reply)
}

// answerFleet tells another agent what it has missed of the fleet.
func (s *store) answerFleet(question []byte) ([]byte, error) {
	r := new(backfill.FleetRequest)
	if err := json.Unmarshal(question, r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	reply := s.origins.Reply(r)
	s.mu.Unlock()
	reply.Log = s.log.Epoch()
	if reply.Log != r.Log {
		r.After = 0
	}
	reply.Next = s.log.Select(r.After, retention.Limits{Messages: r.Messages, Bytes: r.Bytes}, r.Wants(reply),
		page(&reply.Coded))
	return json.Marshal(reply)
}

// page returns a function that adds messages to a page, until that is full.
func page(coded *[][]byte) func(*retention.Message) bool {
	bytes := 0
	return func(m *retention.Message) bool {
		b := m.Append(nil)
		*coded, bytes = append(*coded, b), bytes+len(b)
		return bytes < pageBytes
	}
}
