package admission

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// All members have the same secret, and do not change it at the same moment. So a secret is
// replaced while both count: a file has one in each line, of which its process proves the first
// and accepts all.

const (
	// MinSecret is the shortest secret, in bytes.
	MinSecret = 16
	// MaxSecrets is how many a file may have.
	MaxSecrets = 4
)

// Secrets are those that a file holds, in order.
type Secrets struct{ files followed[[][]byte] }

// SecretFile follows a file with secrets.
func SecretFile(path string) (*Secrets, error) {
	s := &Secrets{followed[[][]byte]{paths: []string{path}, load: func() ([][]byte, error) { return ReadSecrets(path) }}}
	if err := s.files.begin(); err != nil {
		return nil, err
	}
	return s, nil
}

// Current returns the secrets, at least one. They must not be changed.
func (s *Secrets) Current() [][]byte { return s.files.current() }

// Look returns the secrets, and why the file cannot be used as it is now.
func (s *Secrets) Look() ([][]byte, error) { return s.files.look() }

// ReadSecrets reads a file with secrets. Empty lines do not count.
func ReadSecrets(path string) ([][]byte, error) {
	if err := CheckFile(path); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	secrets, err := ParseSecrets(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return secrets, nil
}

// ParseSecrets returns the secrets in the contents of a file.
func ParseSecrets(b []byte) (secrets [][]byte, err error) {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			continue
		case len(line) < MinSecret:
			return nil, fmt.Errorf("the secret in line %d has %d bytes, so that it could be guessed: at least %d", n, len(line),
				MinSecret)
		case len(secrets) == MaxSecrets:
			return nil, fmt.Errorf("more than %d secrets", MaxSecrets)
		}
		secrets = append(secrets, line)
	}
	if len(secrets) == 0 {
		return nil, errors.New("there is no secret in it")
	}
	return secrets, nil
}
