package stream

// Recycling: a program that has released a long message leaves its memory to messages that
// arrive later. New memory costs as much as everything else that a member does with the
// bytes of a long message: the runtime clears it, the system provides it page by page, and
// the garbage collector runs more often. What a program does not release is left to the
// garbage collector.

// Lease is the program's hold on the memory of one message.
type Lease struct {
	buffer   *reassemblyBuffer
	released bool
}

// lease begins a hold on a buffer's message. Without a buffer there is none.
func (r *reassemblyBuffer) lease() *Lease {
	if r == nil {
		return nil
	}
	r.leased = true
	r.leases++
	return &Lease{buffer: r}
}

// holds reports whether a buffer has a message, and nothing else.
func (r *reassemblyBuffer) holds(message []byte) bool {
	return r != nil && len(message) > 0 && len(r.memory) == len(message) && &r.memory[0] == &message[0]
}

// Release says that the program does not use a message any more: its memory may be
// overwritten. A message without a lease need not be released, and any other one need not
// be either.
func (m *Member) Release(l *Lease) {
	if l != nil && !l.released {
		l.released = true
		l.buffer.leases--
	}
}

// recycle keeps the memory of a segment that was trimmed, if it is the last of its message
// and if nothing else uses that memory: neither the program nor a frame that is to be
// sent. The buffer stays leased: no segment goes there any more.
func (m *Member) recycle(number uint64, seg *segment) {
	r := seg.buffer
	if r == nil || !r.leased || r.leases > 0 || r.lent || r.next != number+1 || m.sends(r) {
		return
	}
	m.spare.put(r.memory)
}

// sends reports whether a part of a buffer is to be sent.
func (m *Member) sends(r *reassemblyBuffer) bool {
	for i := range m.outbox.Len() {
		if m.outbox.At(i).buffer == r {
			return true
		}
	}
	for _, b := range m.backlogs {
		for i := range b.sends {
			if b.sends[i].buffer == r {
				return true
			}
		}
	}
	return m.lastSent.buffer == r
}

// maxSpare bounds the memory that waits for a message.
const maxSpare = 1 << 20

// spareMemory is memory that is not used at the moment.
type spareMemory struct {
	free  [][]byte
	bytes int
}

// put adds memory, unless there is enough.
func (s *spareMemory) put(memory []byte) {
	if s.bytes+cap(memory) <= maxSpare {
		s.free = append(s.free, memory[:0])
		s.bytes += cap(memory)
	}
}

// get returns an empty slice of a capacity, in spare memory if some has it and is not much
// larger, and otherwise in new memory. The rest of spare memory would be retained with it.
func (s *spareMemory) get(size int) []byte {
	for i := len(s.free) - 1; i >= 0; i-- {
		if c := cap(s.free[i]); size <= c && c <= size+size/8 {
			memory := s.free[i][:0:size]
			s.free = append(s.free[:i], s.free[i+1:]...)
			s.bytes -= c
			return memory
		}
	}
	return make([]byte, 0, size)
}
