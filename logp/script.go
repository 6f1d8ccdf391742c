package logp

// script is what a boundary process sends in the first slots in which a message can
// influence it. Only common sends can be known by then, so the script depends only on
// which neighbors are colored.
type script struct {
	sends []scriptSend // other than with the reaction
	end   progress     // where that leaves the process
	done  bool
}

// scriptSend is a send of a script.
type scriptSend struct {
	slot   int // counted from slot lag
	offset sendOffset
}

// maxScripted bounds the slots that are scripted, and so the number of scripts.
const maxScripted = 8

// writeScripts makes a script for every neighborhood of a boundary process: bit i says
// that the position i − view to the right is colored.
func (l *lockstep) writeScripts(r *rule) {
	l.scripted = l.common[:min(len(l.common), maxScripted)]
	for _, b := range l.scripted {
		l.view = max(l.view, int(b.distance()))
	}
	l.scripts = make([]script, 1<<(2*l.view+1))
	for around := range l.scripts {
		s := &l.scripts[around]
		s.end = l.state
		for slot, b := range l.scripted {
			if around>>b.sender(l.view)&1 != 0 {
				r.receive(&s.end, b)
			}
			own, ok := r.next(&s.end)
			if !ok {
				s.done = true
				break
			}
			if slot > 0 || !l.reacts || own != l.reaction {
				s.sends = append(s.sends, scriptSend{slot, own})
			}
		}
	}
}

// script is the script of a position.
func (s *stretch) script(position int) *script {
	return &s.scripts[s.colored.fetch(position-s.view)&below(2*s.view+1)]
}
