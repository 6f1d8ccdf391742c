package bench

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/driver/admission"
)

// MaxRounds bounds what one machine is asked to repeat.
const MaxRounds = 10_000_000

// ownFiles is how many files the process needs besides those of members.
const ownFiles = 64

// CheckOpenFiles says what to do before a benchmark fails half way, if its members
// take so many files. Fewer says what to choose less of. The limit is the hard one:
// package os raises the soft one to it when a program starts.
func CheckOpenFiles(members, files int, fewer string) error {
	limit, ok := admission.OpenFileLimit()
	if need := uint64(ownFiles + files); ok && need > limit {
		return fmt.Errorf("--members %d: about %d files would be open, and the limit is %d: raise it by ulimit -n %d, or choose fewer %s", members, need, limit, need, fewer)
	}
	return nil
}

// CheckMembers is [CheckOpenFiles] for members that take so many files each. It also
// names the largest number of members that fits.
func CheckMembers(members, filesEach int, fewer string) error {
	err := CheckOpenFiles(members, members*filesEach, fewer)
	if limit, _ := admission.OpenFileLimit(); err != nil {
		return fmt.Errorf("%w: at most %d fit", err, (max(limit, ownFiles)-ownFiles)/uint64(filesEach))
	}
	return nil
}
