// Package bench is what the benchmarks of pleach-lab bench share: records that members
// in processes of their own report over a pipe, statistics, and limits.
//
//   - broadcast measures how long a broadcast takes to reach every live member.
//   - stabilization measures how soon survivors agree on a view without a member
//     that was killed.
//   - ulfm measures how soon the survivors of an MPI program continue, which
//     stabilization compares.
//   - collectives compares collective operations with Open MPI's.
//   - restart measures what a killed process costs a job.
//   - sort compares a whole job that sorts with GNU sort.
//   - cp compares copies of a file with a bare chain and a loop of copies.
//   - scale measures what a member costs as its group grows.
//   - shards measures how soon partitions are owned again, and that no request has two
//     owners.
//
// A benchmark starts its members through agent/launch.
package bench
