//go:build !unix

package bench

import "time"

// ProcessorTime is not known here.
func ProcessorTime() time.Duration { return 0 }
