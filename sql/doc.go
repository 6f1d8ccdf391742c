// Package sql runs queries with all processes of a job, each with a DuckDB of its own, and
// completes with the same result although processes die.
//
//	db, err := sql.Open()
//	defer db.Close()
//	data, err := dataset.Open("tpch1")
//	result, err := db.Run(ctx, world, sql.Job{Query: "SELECT count(*) FROM orders", Source: data})
//	err = world.Finalize(ctx)
//
// A query is planned by one of the processes ([NewPlan]), or a [Plan] is given. It is a sequence
// of stages. In a stage every task runs a query on the rows that it
// has, and an [Exchange] brings the result to the tasks that need it. There is no
// coordinator, no shared storage between the stages and no log on disk.
//
// # When a process dies
//
// The new owner of its task runs the task's stages again, and nothing else is done again:
// it reads the task's partition of the tables from a place that still has it ([Source]).
// Rows that the task had received come from the logs of the processes that had sent them
// ([collective.Comm.Hold]).
//
// # What a query must be like
//
// A task that is run again has to give the same rows in the same order, or the job ends
// with a [*collective.DivergedError]. DuckDB does so with one thread, as here, unless the
// query asks for something else: random(), now(), a sample, or LIMIT without an ORDER BY
// that is total.
package sql
