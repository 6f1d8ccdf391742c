package tcp

import (
	"net"
	"time"
)

// tune makes the system notice a silent host: by a limit for unacknowledged data,
// and by keep-alive probes when there is no data. Small frames are sent at once
// (TCP_NODELAY), which is the default of package net.
func tune(c net.Conn, cfg *Config) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	limit := cfg.UserTimeout
	err := tcp.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable:   true,
		Idle:     max(time.Second, limit/2),
		Interval: max(time.Second, limit/4),
		Count:    2,
	})
	if err == nil {
		err = setUserTimeout(tcp, limit)
	}
	if err != nil {
		cfg.Logger.Warn("a silent host may be noticed late", "cause", err)
	}
}
