package detect

// None suspects no peer. It is for static groups, in which broadcasts need no
// detector.
type None struct{}

var _ Detector = None{}

// Start does nothing.
func (None) Start(func(Report)) error { return nil }

// Watch does nothing.
func (None) Watch(Peers) {}

// Close does nothing.
func (None) Close() error { return nil }
