package admission

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
)

// A certificate is valid until it expires, and its authority has no means to reach the members
// before. So an operator writes a list of what is denied, which members follow like their
// certificates.

// maxDeny bounds a deny list, in bytes.
const maxDeny = 1 << 20

// Deny is a list of certificates and members that are denied. A nil Deny denies nothing.
type Deny struct{ files followed[*denied] }

// denied is what a list denies.
type denied struct{ serials, ids, uris map[string]bool }

// ErrRevoked means that a certificate, or the member that it is for, is on a deny list.
var ErrRevoked = errors.New("revoked")

// DenyFile follows a file with one entry in each line: "serial HEX", "id ID" or "uri URI".
// Empty lines and lines that begin with # are comments.
func DenyFile(path string) (*Deny, error) {
	d := &Deny{followed[*denied]{paths: []string{path}, load: func() (*denied, error) { return loadDeny(path) }}}
	if err := d.files.begin(); err != nil {
		return nil, err
	}
	return d, nil
}

// Look reads the file if it has changed. It returns a value that differs from the one before
// if the list does, and why the file cannot be used as it is now.
func (d *Deny) Look() (list any, err error) {
	if d == nil {
		return nil, nil
	}
	return d.files.look()
}

// Names reports whether a member with an ID is denied, whatever its certificate.
func (d *Deny) Names(id string) bool { return d != nil && d.files.current().ids[id] }

// Check returns an [ErrRevoked] if a certificate is denied, or the member that its process
// claims to be. The ID may be empty.
func (d *Deny) Check(leaf *x509.Certificate, id string) error {
	if d == nil {
		return nil
	}
	list, entry := d.files.current(), ""
	switch serial := leaf.SerialNumber; {
	case serial != nil && list.serials[serial.Text(16)]:
		entry = "serial " + serial.Text(16)
	case id != "" && list.ids[id]:
		entry = "id " + id
	}
	for _, u := range leaf.URIs {
		if list.uris[u.String()] {
			entry = "uri " + u.String()
		} else if named, ok := parseURI(u); ok && named.id != "" && list.ids[named.id] {
			entry = "id " + named.id
		}
	}
	for _, name := range leaf.DNSNames {
		if list.ids[name] {
			entry = "id " + name
		}
	}
	if entry == "" {
		return nil
	}
	return fmt.Errorf("a certificate for %v is %w: the deny list has %q", NamesOf(leaf), ErrRevoked, entry)
}

func loadDeny(path string) (*denied, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) > maxDeny {
		err = fmt.Errorf("%s has %d bytes: at most %d", path, len(b), maxDeny)
	}
	if err != nil {
		return nil, err
	}
	list := &denied{make(map[string]bool), make(map[string]bool), make(map[string]bool)}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxDeny+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := list.add(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return list, lines.Err()
}

// add adds an entry.
func (l *denied) add(line string) error {
	kind, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	switch {
	case value == "" || !slices.Contains([]string{"serial", "id", "uri"}, kind):
		return fmt.Errorf("%q is not an entry: write serial HEX, id ID or uri URI", line)
	case kind == "id":
		l.ids[value] = true
	case kind == "uri":
		l.uris[value] = true
	default:
		serial, ok := new(big.Int).SetString(strings.ReplaceAll(value, ":", ""), 16)
		if !ok || serial.Sign() < 0 {
			return fmt.Errorf("%q is not a serial number: write it in hexadecimal, as openssl x509 -noout -serial does", value)
		}
		l.serials[serial.Text(16)] = true
	}
	return nil
}
