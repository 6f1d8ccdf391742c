//go:build !unix

package bench

import (
	"os"

	"github.com/pleach-go/pleach/agent/launch"
)

// Reports is the end of a pipe where records come in: here there is none.
type Reports struct{}

// OpenReports returns both ends of a pipe: members inherit the file.
func OpenReports() (*Reports, *os.File, error) { return nil, nil, launch.ErrUnsupported }

// Read takes the records that are there, if any.
func (*Reports) Read(func(Record)) (some bool, err error) { return false, launch.ErrUnsupported }

// Close closes the pipe.
func (*Reports) Close() error { return nil }
