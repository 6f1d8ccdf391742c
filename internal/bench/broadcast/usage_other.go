//go:build !unix

package broadcast

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
