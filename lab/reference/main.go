// Reference writes the API references of the site as Markdown pages: of the Go packages, of the
// Python package, and of the agent's HTTP API. `make site` runs it.
//
//	go run ./lab/reference DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "reference: write the directory of the pages")
		os.Exit(2)
	}
	if err := write(".", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write writes the references of a repository into a directory.
func write(root, dir string) error {
	pages, err := goPages(root)
	if err != nil {
		return err
	}
	for name, page := range map[string]func(string) (string, error){"python": pythonPage, "agent": agentPage} {
		pages[name], err = page(root)
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// escape writes text that has no markup.
func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "{{", "&#123;&#123;", "|", `\|`, "*", `\*`, "_", `\_`).Replace(text)
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
