package retention

// What another agent has missed, it gets from this log.

// Select calls take with the messages from a number on for which want returns true, until take
// returns false. It returns the number to continue with, or 0 if there are no more. From 0 on are
// the last of them that another log retains.
func (l *Log) Select(from uint64, limits Limits, want func(*Message) bool, take func(*Message) bool) (next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == 0 {
		from = l.next()
		for messages, bytes := 0, 0; from > l.first; from-- {
			m := l.retained.At(int(from - 1 - l.first))
			if !want(m) {
				continue
			}
			messages, bytes = messages+1, bytes+sizeOf(m)
			if messages > limits.Messages || bytes > limits.Bytes {
				break
			}
		}
	}
	for n := max(from, l.first); n < l.next(); n++ {
		if m := l.retained.At(int(n - l.first)); want(m) && !take(m) {
			return n + 1
		}
	}
	return 0
}

// Last returns the last message of a filter that is retained.
func (l *Log) Last(f Filter) (m Message, ok bool) {
	c, ok := l.SubscribeLast(f)
	if ok {
		e, _ := c.try()
		m = *e.Message
	}
	return m, ok
}
