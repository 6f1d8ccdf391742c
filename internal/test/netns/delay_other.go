//go:build !linux

package netns

import "time"

// Delay cannot be had here.
func (n *Net) Delay(int, time.Duration) bool { return false }
