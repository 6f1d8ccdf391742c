// Package sort measures pleach sort: how long a sort takes compared with GNU sort on the same
// input, and what a process that is killed in one of its phases costs, if the survivors
// take over its task and if the whole job is started again.
package sort
