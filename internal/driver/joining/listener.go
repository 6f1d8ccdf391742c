package joining

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// lentListener is a listener that outlives the transport that it is lent to: its Close
// only ends Accept. So the socket never refuses a connection while this process lives.
type lentListener struct {
	net.Listener
	kept   atomic.Bool // Close closes the socket
	closed atomic.Bool
}

// lend lends a listener.
func lend(l net.Listener) *lentListener { return &lentListener{Listener: l} }

// keep makes the listener that of what it is lent to.
func (l *lentListener) keep() { l.kept.Store(true) }

// Accept implements [net.Listener].
func (l *lentListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && l.closed.Load() {
		err = net.ErrClosed
	}
	return conn, err
}

// Close implements [net.Listener].
func (l *lentListener) Close() error {
	if l.kept.Load() {
		return l.Listener.Close()
	}
	l.closed.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

// giveBack makes the socket usable again.
func (l *lentListener) giveBack() { _ = l.SetDeadline(time.Time{}) }

// SetDeadline bounds Accept.
func (l *lentListener) SetDeadline(t time.Time) error {
	d, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return errors.New("the listener cannot be lent")
	}
	return d.SetDeadline(t)
}
