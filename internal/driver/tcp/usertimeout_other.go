//go:build !linux

package tcp

import (
	"net"
	"time"
)

// setUserTimeout does nothing except on Linux. The limit of the system applies to
// unacknowledged data.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
