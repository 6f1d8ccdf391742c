// Package shards measures who owns what when members of a group die and restart: how soon
// every partition is owned again, how many have moved, and whether a request was ever served
// by two owners. All members are in this process, over TCP, so that one clock sees them all.
package shards
