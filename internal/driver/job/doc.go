// Package job connects the engine of a job's process, which makes collective calls, to the
// group of the job's processes: it carries messages between two of them, tells the engine
// which processes are left, and the group which of them are stuck.
package job
