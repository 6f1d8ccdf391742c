package logp

// receiveQueue is the messages to boundary processes, by the slot from which on their
// receivers know them.
type receiveQueue struct {
	slots [][]arrival // a ring of a power of two
}

// arrival is a message to a boundary process.
type arrival struct {
	to     uint32 // an index of [boundary.list]
	offset sendOffset
}

func (q *receiveQueue) add(now, slot int, a arrival) {
	for slot-now >= len(q.slots) {
		q.grow(now)
	}
	list := &q.slots[slot&(len(q.slots)-1)]
	*list = append(*list, a)
}

// take removes and returns the messages of a slot. They are valid until the next
// add.
func (q *receiveQueue) take(slot int) []arrival {
	if len(q.slots) == 0 {
		return nil
	}
	list := &q.slots[slot&(len(q.slots)-1)]
	taken := *list
	*list = taken[:0]
	return taken
}

// grow doubles how far ahead the queue reaches.
func (q *receiveQueue) grow(now int) {
	n := max(8, 2*len(q.slots))
	slots := make([][]arrival, n)
	for slot := now; slot < now+len(q.slots); slot++ {
		slots[slot&(n-1)] = q.slots[slot&(len(q.slots)-1)]
	}
	q.slots = slots
}

func (q *receiveQueue) clear() {
	for i := range q.slots {
		q.slots[i] = q.slots[i][:0]
	}
}
