package logp

// agenda is what flanks will hear, by the slot in which they will have heard it.
type agenda struct {
	slots [][]hearing // a ring of a power of two
}

// hearing is a message heard by a flank.
type hearing struct {
	flank uint32
	beat  beat
}

func (a *agenda) add(now, slot int, h hearing) {
	for slot-now >= len(a.slots) {
		a.grow(now)
	}
	list := &a.slots[slot&(len(a.slots)-1)]
	*list = append(*list, h)
}

// take removes and returns what is heard in a slot; it is valid until the next
// add.
func (a *agenda) take(slot int) []hearing {
	if len(a.slots) == 0 {
		return nil
	}
	list := &a.slots[slot&(len(a.slots)-1)]
	taken := *list
	*list = taken[:0]
	return taken
}

// grow doubles how far ahead the agenda reaches.
func (a *agenda) grow(now int) {
	n := max(8, 2*len(a.slots))
	slots := make([][]hearing, n)
	for slot := now; slot < now+len(a.slots); slot++ {
		slots[slot&(n-1)] = a.slots[slot&(len(a.slots)-1)]
	}
	a.slots = slots
}

func (a *agenda) clear() {
	for i := range a.slots {
		a.slots[i] = a.slots[i][:0]
	}
}
