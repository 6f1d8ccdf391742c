package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The licences of most modules ask for their text with every copy. So a package has those of all
// modules in its binary, and that of Go's library.

// licenceFolder is where they are in a package.
const licenceFolder = "share/doc/pleach/licenses"

// ours is the path of the library, and begins those of the other modules of this repository.
const ours = "github.com/pleach-go/pleach"

// licenceName matches the files of a module that have to go with it.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licences returns the licences of the modules in a binary. A module without one is an error.
func (b *build) licences(binary string) (files []file, err error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	root := exec.Command("go", "env", "GOROOT")
	root.Dir = b.root
	goRoot, err := output(root)
	if err != nil {
		return nil, err
	}
	files, err = licencesIn(goRoot, "std")
	if err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		name := m.Path
		if name == ours || strings.HasPrefix(name, ours+"/") {
			continue // its license is the package's copyright file
		}
		if m.Replace != nil {
			m = m.Replace
		}
		download := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version)
		download.Dir = b.root
		text, err := output(download)
		if err != nil {
			return nil, err
		}
		var module struct{ Dir string }
		if err := json.Unmarshal([]byte(text), &module); err != nil {
			return nil, err
		}
		more, err := licencesIn(module.Dir, name)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// licencesIn returns the licences in the directory of a module.
func licencesIn(directory, module string) (files []file, err error) {
	entries, err := os.ReadDir(directory) // in order
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(directory, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: path.Join(licenceFolder, module, e.Name()), data: data, mode: 0o644})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no licence in %s", module, directory)
	}
	return files, nil
}
