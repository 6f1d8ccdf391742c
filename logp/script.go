package logp

// script is what a flank sends in the first slots in which it may hear
// something. Nothing but beats can be heard by then, so it depends only on who
// around the flank is colored.
type script struct {
	calls  []call // what it sends, other than with the chorus
	finale stance // where that leaves it
	done   bool
}

// call is a send of a script.
type call struct {
	turn int // how many slots after slot deaf
	beat beat
}

// maxScripted bounds the slots that are scripted, and so the number of scripts.
const maxScripted = 8

// writeScripts makes a script for every neighborhood of a flank: bit i says that
// the position i − view to the right is colored.
func (l *lockstep) writeScripts(r *rule) {
	l.scripted = l.beats[:min(len(l.beats), maxScripted)]
	for _, b := range l.scripted {
		l.view = max(l.view, int(b.distance()))
	}
	l.scripts = make([]script, 1<<(2*l.view+1))
	for around := range l.scripts {
		s := &l.scripts[around]
		s.finale = l.state
		for turn, b := range l.scripted {
			if around>>b.sender(l.view)&1 != 0 {
				r.hear(&s.finale, b)
			}
			own, ok := r.next(&s.finale)
			if !ok {
				s.done = true
				break
			}
			if turn > 0 || !l.sings || own != l.chorus {
				s.calls = append(s.calls, call{turn, own})
			}
		}
	}
}

// script is the script of a position.
func (s *stretch) script(position int) *script {
	return &s.scripts[s.colored.fetch(position-s.view)&below(2*s.view+1)]
}
