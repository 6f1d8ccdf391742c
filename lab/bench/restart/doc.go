// Package restart measures what a killed process costs a job: how much longer the
// job takes than without a failure, if the survivors take over the dead process's
// task, and if the whole job is started again. The job is rounds of computing,
// each followed by an Allreduce.
package restart
