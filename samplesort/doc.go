// Package samplesort sorts records with all processes of a job, and completes with the same
// output although processes die.
//
//	result, err := samplesort.Run(ctx, world, samplesort.Job{
//		Input:  samplesort.Generate(2_000_000),
//		Output: "sorted",
//	})
//
// It is sample sort (Frazer & McKellar 1970; with collectives: Stengler 2017, §3.7), in four
// phases:
//
//  1. sample: each task reads its share of the input, and all gather a sample of the keys.
//     Each process chooses the same limits of buckets from it, one bucket for each task.
//  2. exchange: each task sends every record to the task of its bucket, by an Alltoall.
//  3. sort: each task sorts its bucket.
//  4. write: each task writes its bucket to a file of its own. In the order of their names
//     the files are the sorted output.
//
// The order is stable: records with the same key stay in the order of the input. Equal keys
// may go to several tasks, so an input with few distinct keys is spread, too.
//
// # When a process dies
//
// The new owner of its task reads the task's share of the input again. So every process has
// to be able to read all of the input, and to write to the output.
//
// A process that dies after the exchange takes its bucket along. The new owner then gets the
// records from the senders, which keep what they have sent until all files are written
// ([collective.Comm.Hold]). An input of more bytes than pleach.Job.LogBytes is not kept: the new
// owner then reads all of the input again, and picks the records of the bucket. See [Job] for
// what a reader of the output relies on.
//
// The records are held in memory, each up to four times at the peak. One task sends at most
// 1 GiB to another one.
package samplesort
