package archtest

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// platforms differ from the one that tests run on: an int of 32 bits, another Unix, no Unix.
var platforms = []string{"linux/386", "darwin/arm64", "windows/amd64"}

// The library compiles on other platforms. Its types are checked from source, which takes
// a fraction of the time of a build for each of them.
func TestLibraryCompilesElsewhere(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector makes it slow, and there is no other goroutine")
	}
	for _, platform := range platforms {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newSources(platform)
			for _, pkg := range []string{module, module + "/collective"} {
				if _, err := s.Import(pkg); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// sources is an importer that checks packages from source for one platform.
type sources struct {
	context build.Context
	sizes   types.Sizes
	files   *token.FileSet
	checked map[string]*types.Package // by folder
}

func newSources(platform string) *sources {
	s := &sources{context: build.Default, files: token.NewFileSet(), checked: map[string]*types.Package{}}
	s.context.GOOS, s.context.GOARCH, _ = strings.Cut(platform, "/")
	s.context.CgoEnabled = false
	// The calling convention is this platform's, and has tags.
	s.context.ToolTags = slices.DeleteFunc(slices.Clone(s.context.ToolTags), func(tag string) bool {
		return strings.HasPrefix(tag, "goexperiment.regabi")
	})
	s.sizes = types.SizesFor("gc", s.context.GOARCH)
	return s
}

// Import implements [types.Importer].
func (s *sources) Import(path string) (*types.Package, error) { return s.ImportFrom(path, "", 0) }

// ImportFrom implements [types.ImporterFrom]: the standard library has vendored packages,
// which depend on the folder of the importing one.
func (s *sources) ImportFrom(path, folder string, _ types.ImportMode) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if below, ours := strings.CutPrefix(path, module); ours {
		p, err := s.context.ImportDir(filepath.Join("..", "..", "..", below), 0)
		if err != nil {
			return nil, err
		}
		return s.check(path, p, false)
	}
	p, err := s.context.Import(path, folder, 0)
	if err != nil {
		return nil, err
	}
	return s.check(path, p, true)
}

// check checks a package, and of one that is not ours only what it declares.
func (s *sources) check(path string, p *build.Package, declarations bool) (*types.Package, error) {
	if pkg, ok := s.checked[p.Dir]; ok {
		return pkg, nil
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	c := types.Config{Importer: s, Sizes: s.sizes, IgnoreFuncBodies: declarations}
	pkg, err := c.Check(path, s.files, files, nil)
	if err == nil {
		s.checked[p.Dir] = pkg
	}
	return pkg, err
}
