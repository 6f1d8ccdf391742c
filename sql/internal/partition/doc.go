// Package partition cuts the rows of a query into parts, one for each task, and encodes
// them for the wire: Arrow IPC streams.
//
// Which part a row belongs to depends on its key alone, by a hash of this package or by
// limits that all tasks know. DuckDB's own hash may change between versions, and then the
// rows of a job's tasks would not meet.
//
// Rows keep their order within a part, so equal rows in give equal bytes out.
package partition
