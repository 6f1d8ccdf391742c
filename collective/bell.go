package collective

// bell tells any number of goroutines that something has changed. It is guarded
// by the engine's lock.
type bell struct{ next chan struct{} }

// wait returns what is closed when it rings next.
func (b *bell) wait() <-chan struct{} {
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) give() {
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
