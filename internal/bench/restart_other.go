//go:build !unix

package bench

import "context"

// MeasureRestart would measure.
func MeasureRestart(context.Context, Restart) (RestartResult, error) {
	return RestartResult{}, errNeedsUnix
}

// ServeWorker would be a process that MeasureRestart starts.
func ServeWorker(context.Context, string) error { return errNeedsUnix }
