package archtest

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// One vocabulary, the field's: these tests keep words out that this module once had
// for things that have established names, and sentences that hide their subject.

// retired maps words to what they are called instead. An identifier must not have
// one of them among its camel-case words.
var retired = map[string]string{
	"bell":        "notifier",
	"carrier":     "unicast",
	"clerk":       "sender",
	"congestible": "throttler",
	"contestant":  "system under test",
	"courier":     "p2p",
	"decongest":   "throttle",
	"doomed":      "excluded",
	"doorkeeper":  "request handler",
	"draft":       "typed buffer",
	"drill":       "workload",
	"errand":      "outgoing message or report",
	"gatherer":    "vector sender",
	"glance":      "poll interval",
	"greet":       "preconnect",
	"greeted":     "preconnect",
	"guest":       "client",
	"guests":      "pending joins",
	"hasten":      "flush batch",
	"haves":       "positions",
	"hear":        "handle",
	"herald":      "tracker",
	"holed":       "NACK sent",
	"inquiry":     "probe",
	"invitation":  "join reply",
	"knock":       "request",
	"knocked":     "request",
	"laggard":     "slow receiver",
	"laggards":    "slow receivers",
	"lately":      "stall timeout",
	"letter":      "message",
	"letters":     "message",
	"lineup":      "roster",
	"lobby":       "handshakes",
	"mend":        "correction plan",
	"obituary":    "abort notice",
	"pact":        "agreement",
	"placer":      "buffer provider",
	"poke":        "wake",
	"reminder":    "tail probe",
	"sheet":       "buffer",
	"spoil":       "poison",
	"standing":    "peer state",
	"stranger":    "handshake connection",
	"strayed":     "diverged",
	"strike":      "fault",
	"struck":      "killed",
	"vacate":      "release",
}

// hidden are words that hide a sentence's subject: name it instead, as in "a
// member that".
var hidden = regexp.MustCompile(`(?i)\bwhom?ever\b`)

func TestWordsAreTheFields(t *testing.T) {
	for _, c := range checkWords(t, os.DirFS("../../..")) {
		t.Error(c)
	}
}

func TestWordsAreFound(t *testing.T) {
	for file, data := range map[string]string{
		"a/a.go":      "package a\n\nfunc runErrandNow() {}\n",
		"a/b.go":      "package a\n\n// Who" + "ever reads this.\n",
		"c_test.go":   "package a\n\nvar theErrand int\n",
		"docs/a.md":   "It is for whom" + "ever.\n",
		"b/errand.go": "package b\n",
	} {
		fsys := fstest.MapFS{file: {Data: []byte(data)}}
		if got := checkWords(t, fsys); len(got) != 1 {
			t.Errorf("%s: %q, want one complaint", file, got)
		}
	}
	fine := fstest.MapFS{"a/a.go": {Data: []byte("package a\n\n// An errand is fine in a comment.\nvar errandless int\n")}}
	if got := checkWords(t, fine); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func checkWords(t *testing.T, fsys fs.FS) (complaints []string) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := path.Base(name); name != "." && (strings.HasPrefix(base, ".") || base == "testdata" ||
				base == "node_modules" || name == "site/reference") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md"), path.Dir(name) == "internal/test/archtest":
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(src), "\n") {
			if word := hidden.FindString(line); word != "" {
				complaints = append(complaints, position(name, i+1)+word+" hides the subject: name it")
			}
		}
		if strings.HasSuffix(name, ".go") {
			complaints = append(complaints, checkIdentifiers(t, name, src)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return complaints
}

// checkIdentifiers looks at the name of a file and at what it declares and uses,
// once each.
func checkIdentifiers(t *testing.T, name string, src []byte) (complaints []string) {
	t.Helper()
	if _, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	look := func(line int, identifier string) {
		if seen[identifier] {
			return
		}
		seen[identifier] = true
		for _, word := range camelWords(identifier) {
			if instead, ok := retired[word]; ok {
				complaints = append(complaints, position(name, line)+identifier+": "+word+" is "+instead+" here")
			}
		}
	}
	for _, part := range strings.Split(strings.TrimSuffix(path.Base(name), ".go"), "_") {
		look(1, part)
	}
	fset := token.NewFileSet()
	file := fset.AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return complaints
		}
		if tok == token.IDENT {
			look(file.Line(pos), text)
		}
	}
}

// camelWords splits an identifier into its words, in lower case.
func camelWords(identifier string) []string {
	var words []string
	runes := []rune(identifier)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) &&
			unicode.IsLower(runes[i+1])) || !unicode.IsLetter(runes[i]) {
			words = append(words,
				strings.ToLower(strings.TrimFunc(string(runes[start:i]), func(r rune) bool { return !unicode.IsLetter(r) })))
			start = i
		}
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

func position(name string, line int) string {
	return name + ":" + strconv.Itoa(line) + ": "
}
