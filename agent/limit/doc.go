// Package limit bounds what the clients of an agent's HTTP listeners can use up: connections, and
// by them descriptors, requests at a time, long-lived streams, and bytes of bodies in memory. Every
// bound is shared among sources, such that one of them leaves a part for the others.
package limit

// Connections returns how many connections the local API has at most. The members of the group and
// the agent's files have three quarters of the descriptors that this process may open.
func Connections() int { return min(maxConnections, descriptors()/4) }

// maxConnections bounds the connections where descriptors do not.
const maxConnections = 1024
