package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/fleet"
)

// What an agent asks of a whole fleet it asks of each zone, where a delegate asks the members
// and answers for all of them. So a question crosses each long link once.

// Names of requests: to a zone, for the answers to a query and for what the zone says of
// itself; to a delegate, for its links.
const (
	queryFleetName  = "agent/query"
	statusFleetName = "agent/status"
	linksName       = "agent/links"
)

const (
	maxZonesAsked  = 64               // at a time
	zoneTimeout    = 3 * time.Second  // for what a zone says of itself
	linksTimeout   = time.Second      // for what a delegate says
	defaultAnswers = 10 * time.Second // for a query whose asker has no deadline
)

// zoneQuery is a query that goes to a zone.
type zoneQuery struct {
	Name    string        `json:"name"`
	Data    []byte        `json:"data"`
	Timeout time.Duration `json:"timeout_ns"`
}

// QueryFleet implements [api.Agent]. Other zones get a little less time, so that the members
// that do not answer are named.
func (a *Agent) QueryFleet(ctx context.Context, name string, data []byte) (*api.Answers, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	f, err := a.inFleet()
	if err != nil {
		return nil, err
	}
	timeout := defaultAnswers
	if deadline, ok := ctx.Deadline(); ok {
		timeout = time.Until(deadline)
	}
	question, err := json.Marshal(zoneQuery{name, data, timeout * 4 / 5})
	if err != nil {
		return nil, err
	}
	result := &api.Answers{Name: name, View: g.View().Number, Answers: []api.Answer{}, Unanswered: []api.Unanswered{}}
	var mu sync.Mutex
	eachZone(a.zoneNames(f), func(zone string) {
		var answers api.Answers
		err := askZone(ctx, f, zone, queryFleetName, question, &answers)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			result.UnansweredZones = append(result.UnansweredZones, api.UnansweredZone{Zone: zone, Reason: reasonOf(err)})
			return
		}
		for _, m := range answers.Answers {
			m.Zone = zone
			result.Answers = append(result.Answers, m)
		}
		for _, m := range answers.Unanswered {
			m.Zone = zone
			result.Unanswered = append(result.Unanswered, m)
		}
	})
	slices.SortFunc(result.Answers,
		func(a, b api.Answer) int { return cmp.Or(cmp.Compare(a.Zone, b.Zone), a.Rank-b.Rank) })
	slices.SortFunc(result.Unanswered,
		func(a, b api.Unanswered) int { return cmp.Or(cmp.Compare(a.Zone, b.Zone), a.Rank-b.Rank) })
	slices.SortFunc(result.UnansweredZones, func(a, b api.UnansweredZone) int { return cmp.Compare(a.Zone, b.Zone) })
	return result, nil
}

// zoneNames are the zones that are known, by the settings or because they have told of
// themselves, in order.
func (a *Agent) zoneNames(f *fleet.Fleet) []string {
	names := slices.Collect(maps.Keys(a.config.Load().Zones))
	for _, z := range f.Zones() {
		names = append(names, z.Zone)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// eachZone calls a function for each zone, some at the same time.
func eachZone(zones []string, call func(zone string)) {
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxZonesAsked)
	for _, zone := range zones {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			call(zone)
		})
	}
	asking.Wait()
}

// askZone asks a zone, and decodes its reply.
func askZone(ctx context.Context, f *fleet.Fleet, zone, name string, question []byte, into any) error {
	reply, err := f.Request(ctx, zone, name, question)
	if err != nil {
		return err
	}
	return json.Unmarshal(reply, into)
}

// answerQuery answers the query of an agent of any zone, for all members of this one.
func (a *Agent) answerQuery(ctx context.Context, r fleet.Request) ([]byte, error) {
	var q zoneQuery
	if err := json.Unmarshal(r.Data, &q); err != nil {
		return nil, err
	}
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	return json.Marshal(queryZone(ctx, g, q.Name, q.Data))
}

// Fleet implements [api.Agent].
func (a *Agent) Fleet(ctx context.Context) (*api.Fleet, error) {
	f, err := a.inFleet()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, zoneTimeout)
	defer cancel()
	c := a.config.Load()
	names := a.zoneNames(f)
	status := &api.Fleet{Name: c.Group, Zone: c.Zone, Time: time.Now(), Zones: make([]api.Zone, len(names))}
	eachZone(names, func(zone string) {
		i, _ := slices.BinarySearch(names, zone)
		z := &status.Zones[i]
		*z = api.Zone{Delegates: []api.Delegate{}, Links: []fleet.Link{}}
		if err := askZone(ctx, f, zone, statusFleetName, nil, z); err != nil {
			z.Error = reasonOf(err)
		}
		z.Zone, z.Seconds = zone, -1
	})
	for _, s := range f.Zones() {
		if i, ok := slices.BinarySearch(names, s.Zone); ok {
			z := &status.Zones[i]
			z.Members, z.View, z.Healthy, z.Seconds = s.Members, s.View, s.Healthy, s.Age.Seconds()
		}
	}
	return status, nil
}

// answerStatus tells an agent of any zone what this one is: its delegates and links.
func (a *Agent) answerStatus(ctx context.Context, _ fleet.Request) ([]byte, error) {
	f, err := a.inFleet()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, linksTimeout)
	defer cancel()
	delegates := f.Delegates()
	reports := make([]delegateReport, len(delegates))
	var asking sync.WaitGroup
	for i, m := range delegates {
		asking.Go(func() {
			if b, err := f.Zone().Request(ctx, m, linksName, nil); err == nil {
				_ = json.Unmarshal(b, &reports[i]) // one that is silent, or speaks otherwise, leads nothing
			}
		})
	}
	asking.Wait()
	z := api.Zone{Delegates: []api.Delegate{}, Links: []fleet.Link{}}
	for i, m := range delegates {
		z.Delegates = append(z.Delegates, api.Delegate{
			MemberRef: api.MemberRef{Rank: m.Rank, ID: m.ID},
			Lead:      reports[i].Lead,
		})
		if reports[i].Lead {
			z.Links = reports[i].Links
		}
	}
	return json.Marshal(z)
}

// delegateReport is what a delegate says of itself.
type delegateReport struct {
	Lead  bool         `json:"lead"`
	Links []fleet.Link `json:"links"`
}

func (a *Agent) answerLinks(context.Context, pleach.Request) ([]byte, error) {
	f, err := a.inFleet()
	if err != nil {
		return nil, err
	}
	return json.Marshal(delegateReport{f.Stats().Lead, f.Links()})
}
