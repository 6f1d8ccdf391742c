//go:build !unix

package main

import "errors"

func runJob(jobConfig) error {
	return failure{errors.New("pleach run needs a Unix system: process groups, signals and sockets to inherit")}
}
