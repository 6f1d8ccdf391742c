package archtest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// exportedError is a line of a recorded surface that declares an error.
var exportedError = regexp.MustCompile(`(?m)^(?:\t|var )(Err\w+) +=|^type (\w+Error) struct`)

// Users find the cause and the fix of every error of the root package on one page.
func TestErrorsAreOnThePage(t *testing.T) {
	const page = "docs/operate/troubleshooting.md"
	surface, err := os.ReadFile(recorded + "/pleach.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Errors\n")
	found := exportedError.FindAllStringSubmatch(string(surface), -1)
	for _, name := range found {
		if name[1] != "" && !strings.Contains(table, "`"+name[1]+"`") {
			t.Errorf("%s has no %s", page, name[1])
		}
		if name[2] != "" && !strings.Contains(table, "`*"+name[2]+"`") {
			t.Errorf("%s has no *%s", page, name[2])
		}
	}
	if len(found) < 30 {
		t.Errorf("%d errors were found", len(found))
	}
}
