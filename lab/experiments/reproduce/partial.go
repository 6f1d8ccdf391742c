package reproduce

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// partial keeps, in a session's directory, what is done of one source, beside where
// its tables will be. A large one takes many minutes.
type partial struct {
	session *Session
	source  *Source
	saved   time.Time
}

// keepEvery is how often it is written.
const keepEvery = 2 * time.Second

func (p *partial) file(table string) string {
	return p.session.file(p.source, table) + ".partial"
}

// note is as that of the finished tables, with the number of cells.
func (p *partial) note(cells int) string {
	return fmt.Sprintf("%s%d cells", p.session.note(p.source, p.session.Size), cells)
}

func (p *partial) save(cells int, tables Data) {
	if time.Since(p.saved) < keepEvery {
		return
	}
	for _, name := range p.source.Tables {
		err := p.session.create(p.file(name), func(w io.Writer) error { return tables[name].WriteCSV(w, p.note(cells)) })
		if err != nil {
			return // then more is measured again, should it come to that
		}
	}
	p.saved = time.Now()
}

// load takes only tables that are all of the same cells: a session may have been
// ended between two files.
func (p *partial) load(tables Data) (cells int) {
	kept := Data{}
	for i, name := range p.source.Tables {
		content, err := os.ReadFile(filepath.Join(p.session.Dir, p.file(name)))
		if err != nil {
			return 0
		}
		table, note, err := ReadCSV(content)
		rest, ours := strings.CutPrefix(note, p.session.note(p.source, p.session.Size))
		n := 0
		_, scanned := fmt.Sscanf(rest, "%d cells", &n)
		switch {
		case err != nil, !ours, scanned != nil, n < 1, i > 0 && n != cells,
			!slices.Equal(table.Columns, tables[name].Columns):
			return 0
		}
		kept[name], cells = table, n
	}
	for name, table := range tables {
		table.Rows = kept[name].Rows
	}
	return cells
}

func (p *partial) forget() {
	for _, name := range p.source.Tables {
		_ = os.Remove(filepath.Join(p.session.Dir, p.file(name)))
	}
}
