//go:build !unix

package limit

// descriptors is a number that every system allows.
func descriptors() int { return maxConnections }
