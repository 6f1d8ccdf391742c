package admission

import (
	"os"
	"slices"
	"sync"
	"time"
)

// reloadInterval is how often files are looked at, at most.
const reloadInterval = 250 * time.Millisecond

// followed is a value that files hold. When they change, they are read again. If that fails,
// the value is the last good one until it succeeds.
type followed[T any] struct {
	paths []string
	load  func() (T, error)

	mu     sync.Mutex
	value  T
	stamps []stamp
	looked time.Time
	failed error // the last attempt to read the files
}

// stamp tells whether a file has changed. It is zero if there is no file.
type stamp struct {
	modified time.Time
	size     int64
}

// begin reads the files, which must be good now.
func (f *followed[T]) begin() (err error) {
	f.looked, f.stamps = time.Now(), f.stat()
	f.value, err = f.load()
	return err
}

// current returns the value.
func (f *followed[T]) current() T {
	v, _ := f.look()
	return v
}

// look returns the value, and why the files cannot be used as they are now.
func (f *followed[T]) look() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < reloadInterval {
		return f.value, f.failed
	}
	f.looked = time.Now()
	stamps := f.stat()
	if slices.Equal(stamps, f.stamps) {
		return f.value, f.failed
	}
	v, err := f.load()
	f.failed = err
	if err == nil { // otherwise the files are read again
		f.value, f.stamps = v, stamps
	}
	return f.value, f.failed
}

func (f *followed[T]) stat() []stamp {
	stamps := make([]stamp, len(f.paths))
	for i, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}
