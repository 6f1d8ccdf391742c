//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package sample

// Max is what the tests below know too little of.
func Max(a, b int) int {
	if a-1 > b && a > 0 {
		return a
	}
	note(a + 1)
	return b
}

func note(int) {}
`

// module writes a module with a package and a test, and returns its root.
func module(t *testing.T, test string) string {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.26\n", "max/max.go": sample, "max/max_test.go": "package sample\n\n" + test,
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSites(t *testing.T) {
	sites, err := sitesOf(module(t, ""), "max")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range sites {
		got = append(got, sites[i].String())
	}
	want := []string{
		"max/max.go:5 Max: condition off: a-1 > b && a > 0 → false",
		"max/max.go:5 Max: operator: a-1 > b && a > 0 → a-1 > b || a > 0",
		"max/max.go:5 Max: operator: a-1 > b → a-1 >= b",
		"max/max.go:5 Max: operator: a-1 → a+1",
		"max/max.go:5 Max: operator: a > 0 → a >= 0",
		"max/max.go:8 Max: call left out: note(a + 1) → nothing",
		"max/max.go:8 Max: operator: a + 1 → a - 1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// A test finds a bug that matters to it, and the tree stays as it is.
func TestPlant(t *testing.T) {
	root := module(t, "import \"testing\"\n\nfunc TestMax(t *testing.T) {\n\tif Max(3, 1) != 3 || Max(2, 1) != 1 {\n\t\tt.Fail()\n\t}\n}\n")
	sites, err := sitesOf(root, "max")
	if err != nil {
		t.Fatal(err)
	}
	target, err := newTarget(root, t.TempDir(), sites, 1, []finder{{name: "tests", packages: []string{"./max"}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, found := range []bool{true, true, true, true, false, false, false} {
		v, err := target.plant(context.Background(), sites[i])
		if err != nil || !v.Reached || v.By != "" != found {
			t.Errorf("%v: %+v, %v", &sites[i], v, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "max", "max.go")); err != nil || string(text) != sample {
		t.Errorf("the tree has changed: %s, %v", text, err)
	}
}

// A line of the list excuses a bug as long as there is such a place.
func TestEqual(t *testing.T) {
	sites, err := sitesOf(module(t, ""), "max")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "equal.txt")
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"max Max | operator | a-1 > b | both are the greatest", true},
		{"max Max | operator | a < b | both are the greatest", false},
		{"other Max | operator | a < b | not among these folders", true},
	} {
		if err := os.WriteFile(name, []byte("# why\n"+c.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := readEqual(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := list.check([]string{"max"}, sites); err == nil != c.ok {
			t.Errorf("%s: %v", c.line, err)
		}
	}
}

// The lists of bugs name places that are in the code.
func TestListsNamePlaces(t *testing.T) {
	const root = "../.."
	sites := make(map[string]map[string]bool) // names of the places in a directory
	for _, file := range []string{"equal.txt", "planted.txt"} {
		list, err := readEqual(file)
		if err != nil {
			t.Fatal(err)
		}
		for name := range list {
			directory, _, _ := strings.Cut(name, " ")
			if sites[directory] == nil {
				sites[directory] = make(map[string]bool)
				found, err := sitesOf(root, directory)
				if err != nil {
					t.Fatal(err)
				}
				for i := range found {
					sites[directory][found[i].name()] = true
				}
			}
			if !sites[directory][name] {
				t.Errorf("%s names a place that is gone: %s", file, name)
			}
		}
	}
}
