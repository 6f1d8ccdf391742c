package pleach

import (
	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/detect/swim"
)

// swimDetector returns the detector of silent hosts that SWIMPort asks for, or
// none. It is the only use of package swim here.
func swimDetector(c *Config) []detect.Detector {
	if c.SWIMPort == 0 {
		return nil
	}
	return []detect.Detector{swim.New(swim.Config{Port: c.SWIMPort, SuspicionTimeout: c.Grace, Key: c.SWIMKey})}
}
