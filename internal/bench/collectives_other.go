//go:build !unix

package bench

import "context"

// team would be processes.
type team any

// MeasureCollectives would measure.
func MeasureCollectives(context.Context, Collectives) ([]CollectiveResult, string, error) {
	return nil, "", errNeedsUnix
}

// ServeCollectives would be a process that MeasureCollectives starts.
func ServeCollectives(context.Context) error { return errNeedsUnix }
