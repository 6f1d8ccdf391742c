package figures

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Pages name tables by PART.TABLE. One alone has a line below it that says where it is from.
// Rows of several stand in one table, whose last column says so.
var marks = regexp.MustCompile(`(?s)<!-- begin figures ([^>]+) -->\n(.*?)<!-- end figures -->`)

// Page is one that quotes records.
type Page struct {
	Name    string   // of the file, below the root of the repository
	Tables  []string // as PART.TABLE
	Missing []string // tables without a record: what stands there is older than records
	Have    string
	Want    string // with the tables of the records
}

// Pages returns all pages that quote records.
func Pages(fsys fs.FS) (pages []Page, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil || !marks.Match(text) {
			return err
		}
		p := Page{Name: name, Have: string(text)}
		if err := p.write(fsys); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pages = append(pages, p)
		return nil
	})
	return pages, err
}

// Stale returns the pages that differ from their records.
func Stale(pages []Page) []Page {
	return slices.DeleteFunc(slices.Clone(pages), func(p Page) bool { return p.Have == p.Want })
}

// Update writes the pages that differ from their records.
func Update(root string) error {
	pages, err := Pages(os.DirFS(root))
	if err != nil {
		return err
	}
	for _, p := range Stale(pages) {
		if err := os.WriteFile(filepath.Join(root, p.Name), []byte(p.Want), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// errNoTable is returned for a table that was never recorded.
var errNoTable = errors.New("no record has the table")

// write fills in Want, Tables and Missing.
func (p *Page) write(fsys fs.FS) (err error) {
	p.Want = marks.ReplaceAllStringFunc(p.Have, func(block string) string {
		names := strings.Fields(marks.FindStringSubmatch(block)[1])
		p.Tables = append(p.Tables, names...)
		text, failed := p.table(fsys, names)
		switch {
		case errors.Is(failed, errNoTable) && len(names) == 1:
			p.Missing = append(p.Missing, names[0])
			return block
		case failed != nil:
			err = failed
		}
		return fmt.Sprintf("<!-- begin figures %s -->\n%s<!-- end figures -->", strings.Join(names, " "), text)
	})
	return err
}

// table returns the rows of tables as Markdown.
func (p *Page) table(fsys fs.FS, names []string) (string, error) {
	var b strings.Builder
	for i, name := range names {
		t, err := find(fsys, name)
		if err != nil {
			return "", err
		}
		part, _, _ := strings.Cut(name, ".")
		record, err := filepath.Rel(path.Dir(p.Name), path.Join(Directory, part+".json"))
		if err != nil {
			return "", err
		}
		several := len(names) > 1
		if i == 0 {
			b.WriteString(heading(t.Columns, several))
		}
		for _, row := range t.Rows {
			if several {
				row = append(slices.Clone(row), fmt.Sprintf("[%s](%s)", t.Date, record))
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		if !several {
			fmt.Fprintf(&b, "\n*Measured %s at [%s](%s).*\n\n", t.Date, t.Commit, record)
		}
	}
	return b.String(), nil
}

// heading returns the first two lines of a table.
func heading(columns []string, several bool) string {
	if several {
		columns = append(slices.Clone(columns), "measured")
	}
	return fmt.Sprintf("| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// find returns the table PART.TABLE.
func find(fsys fs.FS, name string) (Table, error) {
	part, table, _ := strings.Cut(name, ".")
	r, err := Read(fsys, part)
	if err != nil {
		return Table{}, err
	}
	i := slices.IndexFunc(r.Tables, func(t Table) bool { return t.Name == table })
	if i < 0 {
		return Table{}, fmt.Errorf("%w %s", errNoTable, name)
	}
	return r.Tables[i], nil
}
