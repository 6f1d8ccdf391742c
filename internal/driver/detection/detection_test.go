package detection

import (
	"bytes"
	"testing"
)

// Detectors get a key where there is a secret: one that is not the secret, and another one
// for each group.
func TestDetectorKey(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	a, b := keyOf("a", secret), keyOf("b", secret)
	if len(a) != 32 || bytes.Equal(a, b) || bytes.Equal(a, secret) || !bytes.Equal(a, keyOf("a", secret)) {
		t.Errorf("the keys are %x and %x", a, b)
	}
	if k := keyOf("a", nil); k != nil {
		t.Errorf("without a secret it is %x", k)
	}
}
