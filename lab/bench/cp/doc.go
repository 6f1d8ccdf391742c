// Package cp measures how long a file takes to reach every member of a group, compared with a bare
// chain of processes and a loop of single copies.
//
// All three are run by the same processes, one after the other: each reads, hashes, writes,
// syncs and renames as much as the others do.
package cp
