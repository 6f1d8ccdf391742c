package main

// A queue is linearizable exactly if no element is taken that was not put, none twice, none out
// of order, and the queue is not found empty while it has elements (Henzinger, Sezgin &
// Vafeiadis 2013, Aspect-Oriented Linearizability Proofs). That is quick to check, where a search
// for an order is exponential in calls without answers. Of the last condition, one element that
// is there for the whole of the call is looked for.

// element is what happened to an element of the queue. Times are 0 where there was no such
// moment.
type element struct {
	value             string
	putCalled, put    int64
	takeCalled, taken int64
	putBy, takenBy    string
	lost              bool
}

// queueHistory is all calls of the queue.
type queueHistory struct {
	elements   map[string]*element
	found      []call // takes that found the queue empty
	unanswered int    // takes
}

// checkQueue checks the queue of a key. It returns how many calls had an answer.
func (c *checker) checkQueue(key int) (answered int) {
	q := queueHistory{elements: map[string]*element{}}
	var takes []call
	c.eachCall(func(k call) {
		switch {
		case k.Key != key:
			return
		case k.Write:
			q.elements[k.Value] = &element{value: k.Value, putCalled: k.At, put: k.answered, putBy: k.process}
		case k.answered == 0:
			q.unanswered++
		case k.result == "":
			q.found = append(q.found, k)
		default:
			takes = append(takes, k)
		}
		if k.answered != 0 {
			answered++
		}
	})
	for _, k := range takes {
		e := q.elements[k.result]
		switch {
		case e == nil || k.answered < e.putCalled:
			c.violated("what is taken was put", k.At, []string{k.process}, "%s has taken %q, which nobody has put", k.process,
				k.result)
		case e.taken != 0:
			c.violated("elements are taken once", k.At, []string{k.process, e.takenBy}, "%s and %s have both taken %q",
				k.process, e.takenBy, k.result)
		default:
			e.takeCalled, e.taken, e.takenBy = k.At, k.answered, k.process
		}
	}
	c.checkQueueOrder(&q)
	return answered
}

// checkQueueOrder: an element that was put before another one is taken before it, or was taken by
// a call without an answer.
func (c *checker) checkQueueOrder(q *queueHistory) {
	lost := 0
	for _, a := range q.elements {
		if a.put == 0 {
			continue
		}
		for _, b := range q.elements {
			if b.taken == 0 || b.putCalled < a.put || b == a {
				continue
			}
			switch {
			case a.taken == 0 && !a.lost:
				a.lost = true
				lost++
			case a.taken != 0 && b.taken < a.takeCalled:
				c.violated("the queue is in order", b.taken, []string{a.putBy, b.takenBy},
					"%q was put before %q, and taken after it", a.value, b.value)
			}
		}
		for _, k := range q.found {
			if a.put < k.At && a.takeCalled > k.answered {
				c.violated("a queue with elements is not empty", k.At, []string{k.process},
					"%s has found the queue empty, which had %q", k.process, a.value)
			}
		}
	}
	if lost > q.unanswered {
		c.violated("no element is lost", 0, nil, "%d elements are gone, and %d calls that take one have no answer", lost,
			q.unanswered)
	}
}
