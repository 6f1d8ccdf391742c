// Package rights says what the clients of an agent's local API may do. A file gives rights to
// tokens, and to users and groups of the host.
package rights

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/internal/driver/admission"
)

// Right is what a request needs.
type Right uint8

// The rights. Public is that of requests that need none.
const (
	Public  Right = 1 << iota
	Read          // the group, its state, messages and events
	Send          // broadcasts, messages to one member, and queries
	Keys          // keys and their values, also to read them
	Locks         // locks, also to list them
	Files         // copies of files to all members
	Operate       // shards for all agents, and the audit log
)

// All is all rights.
const All = Set(Public | Read | Send | Keys | Locks | Files | Operate)

// named is a right with its name.
type named struct {
	right Right
	name  string
}

var names = []named{
	{Read, "read"},
	{Send, "send"},
	{Keys, "keys"},
	{Locks, "locks"},
	{Files, "files"},
	{Operate, "operate"},
}

// String returns the name of the right.
func (r Right) String() string {
	for _, n := range names {
		if n.right == r {
			return n.name
		}
	}
	return "public"
}

// Set is a set of rights.
type Set uint8

// Has reports whether a right is in the set. Public is in each.
func (s Set) Has(r Right) bool { return r == Public || s&Set(r) != 0 }

// parse reads the names of rights, or all.
func parse(text string) (s Set, err error) {
	if strings.TrimSpace(text) == "all" {
		return All, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(names, func(n named) bool { return n.name == name })
		if i < 0 {
			return 0, fmt.Errorf("%q is not a right: write read, send, keys, locks, files, operate or all", name)
		}
		s |= Set(names[i].right)
	}
	return s, nil
}

// Rules are the lines of a file. A nil *Rules gives no rights.
type Rules struct {
	tokens        []token
	users, groups map[int]Set
}

// token is a token with its rights.
type token struct {
	name   string
	hash   [sha256.Size]byte
	rights Set
}

// Limits of a file.
const (
	maxFile  = 1 << 20
	minToken = 16 // bytes
)

// hashPrefix begins a token that the file has the hash of.
const hashPrefix = "sha256:"

// Load reads a file. Only its owner, and its group, may be able to read it.
func Load(file string) (*Rules, error) {
	if err := admission.CheckFile(file); err != nil {
		return nil, fmt.Errorf("rights-file: %w", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("rights-file: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("rights-file: %s has more than %d bytes", file, maxFile)
	}
	r := &Rules{users: make(map[int]Set), groups: make(map[int]Set)}
	number := 0
	for line := range strings.Lines(string(b)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.add(line); err != nil { // which has no token
			return nil, fmt.Errorf("rights-file: %s: line %d: %w", file, number, err)
		}
	}
	return r, nil
}

var errLine = errors.New(
	"write token NAME TOKEN = RIGHTS, user NAME = RIGHTS or group NAME = RIGHTS, as in group deploy = read, send")

func (r *Rules) add(line string) error {
	i := strings.LastIndexByte(line, '=') // a token may have one
	if i < 0 {
		return errLine
	}
	set, err := parse(line[i+1:])
	if err != nil {
		return err
	}
	switch fields := strings.Fields(line[:i]); {
	case len(fields) == 3 && fields[0] == "token":
		return r.addToken(fields[1], fields[2], set)
	case len(fields) == 2 && fields[0] == "user":
		return addID(r.users, fields[1], set, func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.Uid, nil
		})
	case len(fields) == 2 && fields[0] == "group":
		return addID(r.groups, fields[1], set, func(name string) (string, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return "", err
			}
			return g.Gid, nil
		})
	}
	return errLine
}

func (r *Rules) addToken(name, text string, set Set) error {
	t := token{name: name, rights: set, hash: sha256.Sum256([]byte(text))}
	if slices.ContainsFunc(r.tokens, func(other token) bool { return other.name == name }) {
		return fmt.Errorf("another token has the name %q", name)
	}
	if hash, ok := strings.CutPrefix(text, hashPrefix); ok {
		b, err := hex.DecodeString(hash)
		if err != nil || len(b) != len(t.hash) {
			return fmt.Errorf("the hash of the token %q is not one: write %s and 64 hexadecimal digits", name, hashPrefix)
		}
		t.hash = [sha256.Size]byte(b)
	} else if len(text) < minToken {
		return fmt.Errorf("the token %q is shorter than %d bytes", name, minToken)
	}
	r.tokens = append(r.tokens, t)
	return nil
}

// addID adds rights of a user or group, by its number or name.
func addID(to map[int]Set, name string, set Set, lookUp func(string) (string, error)) error {
	id, err := strconv.Atoi(name)
	if err != nil {
		text, lookErr := lookUp(name)
		if lookErr != nil {
			return lookErr
		}
		id, err = strconv.Atoi(text)
		if err != nil {
			return err
		}
	}
	to[id] |= set
	return nil
}

// OfToken returns the rights of a token, and its name.
func (r *Rules) OfToken(text string) (set Set, name string, ok bool) {
	if r == nil {
		return 0, "", false
	}
	hash := sha256.Sum256([]byte(text))
	for i := range r.tokens {
		if t := &r.tokens[i]; subtle.ConstantTimeCompare(t.hash[:], hash[:]) == 1 {
			set, name, ok = t.rights, t.name, true
		}
	}
	return set, name, ok
}

// OfUser returns the rights of a user in groups.
func (r *Rules) OfUser(uid int, groups []int) (set Set) {
	if r == nil {
		return 0
	}
	set = r.users[uid]
	for _, gid := range groups {
		set |= r.groups[gid]
	}
	return set
}

// Local reports whether users or groups of the host have rights.
func (r *Rules) Local() bool { return r != nil && len(r.users)+len(r.groups) > 0 }
