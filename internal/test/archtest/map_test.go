package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING's map names every room of the house, and no other.
func TestMapIsTheTree(t *testing.T) {
	fsys := os.DirFS("../../..")
	text, err := fs.ReadFile(fsys, "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var rooms []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+/|[.])`").FindAllSubmatch(row[1], -1) {
			room := path.Clean(string(name[1]))
			if info, err := fs.Stat(fsys, room); err != nil || !info.IsDir() {
				t.Errorf("CONTRIBUTING.md has a row for %s, which is no folder", name[1])
			}
			rooms = append(rooms, room)
		}
	}
	packages, _ := check(t, fsys, rules)
	modules, err := fs.Glob(fsys, "*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		packages = append(packages, path.Dir(m))
	}
	for _, pkg := range packages {
		named := func(room string) bool { return room == pkg || room != "." && strings.HasPrefix(pkg, room+"/") }
		if !slices.ContainsFunc(rooms, named) {
			t.Errorf("CONTRIBUTING.md has no row for %s", pkg)
		}
	}
}

// The picture of layers shows packages that there are.
func TestPictureOfLayersIsTheTree(t *testing.T) {
	fsys := os.DirFS("../../..")
	picture, err := fs.ReadFile(fsys, "docs/pictures/layers.svg")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`font-weight="bold"[^>]*>([^<]+)<`).FindAllSubmatch(picture, -1)
	if len(names) < 10 {
		t.Fatalf("%d names of packages: the picture is written in another way", len(names))
	}
	for _, name := range names {
		// As in "transport · tcp, mem": what follows the first may be below it.
		parts := regexp.MustCompile(` · |, `).Split(string(name[1]), -1)
		for _, part := range parts {
			if part == "pleach" {
				continue // the root
			}
			_, err := fs.Stat(fsys, part)
			_, below := fs.Stat(fsys, path.Join(parts[0], part))
			if err != nil && below != nil {
				t.Errorf("the picture of layers shows %s, which is no package", part)
			}
		}
	}
}
