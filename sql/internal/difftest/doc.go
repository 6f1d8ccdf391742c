// Package difftest compares plans of random queries with one DuckDB.
//
// A seed makes tables ([NewTables]): columns of many types with NULLs and duplicates, and names that
// are keywords, have quotation marks, or look like those that the planner makes up. Their rows are
// divided among tasks. Then it makes queries over them ([Generate]). A [Cluster] plans each one, runs
// the stages for all tasks in one process, with the encoding that processes use, and runs the query
// over all rows with one DuckDB. The results have to be equal, or the query has to be refused.
// [Cluster.Shrink] reduces a query that fails to a small one.
package difftest
