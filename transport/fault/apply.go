package fault

// locked calls f with the lock of the network held.
func (n *Network) locked(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (f Drop) apply(n *Network)      { n.locked(func() { n.drop.set(f.On, f.Percent) }) }
func (f Duplicate) apply(n *Network) { n.locked(func() { n.duplicate.set(f.On, f.Percent) }) }
func (f Reorder) apply(n *Network)   { n.locked(func() { n.reorder.set(f.On, f) }) }
func (f Delay) apply(n *Network)     { n.locked(func() { n.delay.set(f.On, f) }) }
func (f Cut) apply(n *Network)       { n.locked(func() { n.cut.set(f.On, true) }) }
func (f Partition) apply(n *Network) { n.locked(func() { n.partition = f }) }

func (f Heal) apply(n *Network) {
	n.locked(func() {
		n.cut = setting[bool]{}
		n.partition = Partition{}
	})
}

func (f Freeze) apply(n *Network) { n.locked(func() { n.frozen[f.Rank] = true }) }

func (f Thaw) apply(n *Network) {
	n.locked(func() {
		delete(n.frozen, f.Rank)
		for _, l := range n.linksOf(f.Rank, false) {
			l.flush()
		}
		if m := n.members[f.Rank]; m != nil {
			m.changed.Broadcast()
		}
	})
}

func (f Kill) apply(n *Network) {
	again := false
	n.locked(func() {
		if m := n.members[f.Rank]; m != nil {
			again = m.killed
			m.killed = true
			m.end()
		}
		if !again {
			n.stats.Kills++
		}
	})
	// Without the lock: OnKill may use this network.
	if !again && n.config.OnKill != nil {
		n.config.OnKill(f.Rank)
	}
}

func (f Reset) apply(n *Network) {
	n.locked(func() {
		for _, peer := range n.peersOf(f.Rank) {
			n.reset(f.Rank, peer)
		}
	})
}
