package shards

import (
	"sync"
	"time"
)

// observer sees every request and every change, from outside.
type observer struct {
	mu         sync.Mutex
	partitions []observed
	requests   []time.Duration
	retried    int
	twoOwners  int
	sameToken  int
	oldToken   int
}

// observed is a partition.
type observed struct {
	begun   time.Time // when its owner has begun
	serving *member   // the process that serves a request, or did last
	active  int       // requests that it serves now
	token   uint64    // the highest that was used
	by      *member   // the process that has used it
}

// begins takes that a member owns a partition.
func (o *observer) begins(partition int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partitions[partition].begun = time.Now()
}

// enter takes the beginning of a request.
func (o *observer) enter(partition int, m *member, token uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &o.partitions[partition]
	if p.active > 0 && p.serving != m {
		o.twoOwners++
	}
	p.serving = m
	p.active++
	switch {
	case token < p.token:
		o.oldToken++
	case token == p.token && p.by != m:
		o.sameToken++
	}
	p.token, p.by = max(token, p.token), m
}

// exit takes the end of a request.
func (o *observer) exit(partition int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partitions[partition].active--
}

// served takes a request that was served eventually.
func (o *observer) served(took time.Duration, tries int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, took)
	if tries > 1 {
		o.retried++
	}
}

// since returns how long after a moment partitions were begun, of those that were.
func (o *observer) since(t time.Time) (took []time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := range o.partitions {
		if at := o.partitions[p].begun; at.After(t) {
			took = append(took, at.Sub(t))
		}
	}
	return took
}
