package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// ParseCorrection reads a correction as flags spell it; nil means none. What a
// correction needs to know of the network (the length of a turn, of a timeout)
// it takes from size and the LogP parameters.
func ParseCorrection(text string, size protocol.Rank, l, o protocol.Time) (broadcast.Correction, error) {
	name, argument, hasArgument := strings.Cut(text, ":")
	number := int64(-1)
	if hasArgument {
		n, err := strconv.ParseInt(argument, 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("experiments: correction %q: %q is not a number", text, argument)
		}
		number = n
	}
	bare, numbered := number < 0, number >= 0
	switch {
	case bare && name == "none":
		return nil, nil
	case bare && name == "checked":
		return broadcast.Checked{}, nil
	case bare && name == "throttled":
		return broadcast.Checked{Throttle: o}, nil
	case numbered && name == "opportunistic":
		return broadcast.Opportunistic{Distance: protocol.Rank(number)}, nil
	case numbered && name == "optimized":
		return broadcast.Optimized{Distance: protocol.Rank(number)}, nil
	case numbered && name == "safe":
		return broadcast.Safe{Distance: protocol.Rank(number)}, nil
	case numbered && name == "failure-proof":
		return broadcast.FailureProof{Failures: int(number), Timeout: fullCircle(size, l, o)}, nil
	case numbered && name == "delayed":
		return broadcast.Delayed{Delay: protocol.Time(number)}, nil
	case numbered && name == "paced":
		return broadcast.Delayed{Delay: protocol.Time(number), Paced: true}, nil
	case numbered && name == "patient":
		return broadcast.Delayed{Delay: protocol.Time(number), Patient: true}, nil
	}
	return nil, fmt.Errorf("experiments: unknown correction %q: choose none, checked, throttled, opportunistic:D, "+
		"optimized:D, safe:D (D: distance per side), failure-proof:F (F: failures survived), delayed:D, paced:D or patient:D (D: delay)", text)
}

// fullCircle is long enough for a process to send to both sides all around the
// ring twice and be heard: a process that waits longer waits in vain.
func fullCircle(size protocol.Rank, l, o protocol.Time) protocol.Time {
	return 4*protocol.Time(size)*o + 4*(2*o+l)
}
