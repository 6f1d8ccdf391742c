package testutil

import (
	"testing"
	"time"
)

// hostFactor is how much slower than promised something may be on a host that is busy
// with other things.
const hostFactor = 20

// Took reports an error if something took longer than promised. On a busy host that says
// little, so the promise itself is judged only if PLEACH_FULL is set; without it, only
// what hangs is an error.
func Took(t *testing.T, what string, took, promised time.Duration) {
	t.Helper()
	most := promised
	if !Full.On() {
		most *= hostFactor
	}
	if took > most {
		t.Errorf("%s took %v; %v are promised", what, took, promised)
	}
}
