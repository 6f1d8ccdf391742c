// Package planner makes the stages of a SELECT over tables whose rows are divided among the
// tasks of a job.
//
// DuckDB parses the query, and prints the queries of the stages from the tree again. What is
// between is here. A query block (SELECT … FROM … WHERE …) is right on a task's rows if each
// row of the join arises in exactly one task. So every table that a block reads is either
// whole in each task, or divided: where it lies, or by the hash of a column by which the
// divided tables are joined ([spread] holds that rule). Which of them, is chosen by an
// estimate of the bytes that have to be sent. Groups that more than one task has rows of are
// aggregated twice: partly where the rows are, and then together.
//
// A subquery that refers to nothing outside is a block of its own, and becomes a table. One
// that does so stays where it is, and its tables count to the block around it.
//
// A block that this does not understand gets all of its tables whole, and is run once. A
// query whose answer would not be sure is refused with an [*Error].
package planner
