package reproduce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Session is a reproduction into a directory. What is in the directory already, by the
// same version, is not measured again.
type Session struct {
	// Dir is the directory; it is made if need be.
	Dir string
	// Version is that of the program.
	Version string
	// Force measures everything anew.
	Force bool
	Options
	// Now, if not nil, is told what is measured, and the share of all that is
	// done: one call at a time.
	Now func(source string, share float64)
}

// Outcome is what a session has come to.
type Outcome struct {
	// Claims are those of all experiments in the directory.
	Claims []Claim
	// Done and Left are the names of the experiments that were asked for.
	Done, Left []string
	// Report is the file to look at.
	Report string
}

// Run measures what the experiments need and is not there yet, and writes the
// report of all that is. If ctx ends, the report is of what is done until then.
func (s *Session) Run(ctx context.Context, experiments []Experiment) (*Outcome, error) {
	if err := os.MkdirAll(s.Dir, 0o777); err != nil {
		return nil, err
	}
	if err := s.measureAll(ctx, experiments); err != nil && ctx.Err() == nil {
		return nil, err
	}
	var present []Section
	outcome := &Outcome{Report: filepath.Join(s.Dir, "report.html")}
	for _, e := range Catalog() {
		asked := slices.ContainsFunc(experiments, func(x Experiment) bool { return x.Name == e.Name })
		d, note, ok := s.load(e.Source)
		switch {
		case !ok && asked:
			outcome.Left = append(outcome.Left, e.Name)
		case ok && asked:
			outcome.Done = append(outcome.Done, e.Name)
		}
		if !ok {
			continue
		}
		section := Section{Experiment: e, Claims: e.Claims(d), Measured: note, Files: s.files(e.Source)}
		if err := s.draw(&section, d); err != nil {
			return nil, err
		}
		present = append(present, section)
		outcome.Claims = append(outcome.Claims, section.Claims...)
	}
	return outcome, s.write(outcome, present)
}

// measureAll measures the sources that are not there, each once.
func (s *Session) measureAll(ctx context.Context, experiments []Experiment) error {
	var missing []*Source
	var all, before float64
	for _, e := range experiments {
		known := slices.ContainsFunc(missing, func(x *Source) bool { return x.Name == e.Source.Name })
		if s.Force && !known {
			s.forget(e.Source)
			(&partial{session: s, source: e.Source}).forget()
		}
		if _, _, ok := s.load(e.Source); !known && !ok {
			missing = append(missing, e.Source)
			all += e.Source.Cost[s.Size]
		}
	}
	for _, source := range missing {
		options := s.Options
		options.Progress = func(share float64) {
			if s.Now != nil {
				s.Now(source.Name, (before+share*source.Cost[s.Size])/all)
			}
		}
		options.Progress(0)
		kept := &partial{session: s, source: source}
		options.keep = kept
		began := time.Now()
		data, err := source.Measure(ctx, options)
		if err != nil {
			return fmt.Errorf("%s: %w", source.Name, err)
		}
		if err := s.save(source, data, time.Since(began)); err != nil {
			return err
		}
		kept.forget()
		before += source.Cost[s.Size]
	}
	return nil
}

// forget removes what is there of a source. If it cannot, the source is
// measured into the same files all the same.
func (s *Session) forget(source *Source) {
	for _, name := range s.files(source) {
		_ = os.Remove(filepath.Join(s.Dir, name))
	}
}

// note is the first line of a source's files, but for the time it took: files with the
// same note need not be measured again.
func (s *Session) note(source *Source, size Size) string {
	return fmt.Sprintf("%s; %s, %v, seed %d; ", s.Version, source.Name, size, source.Seed)
}

func (s *Session) file(source *Source, table string) string {
	return source.Name + "-" + table + ".csv"
}

func (s *Session) files(source *Source) (names []string) {
	for _, table := range source.Tables {
		names = append(names, s.file(source, table))
	}
	return names
}

// save writes a source's tables.
func (s *Session) save(source *Source, data Data, took time.Duration) error {
	for _, name := range source.Tables {
		note := fmt.Sprintf("%s%.1f s", s.note(source, s.Size), took.Seconds())
		err := s.create(s.file(source, name), func(w io.Writer) error { return data[name].WriteCSV(w, note) })
		if err != nil {
			return err
		}
	}
	return nil
}

// load reads a source's tables, if all are there and fit: more runs than asked
// for are as good.
func (s *Session) load(source *Source) (data Data, note string, ok bool) {
	data = Data{}
	for _, name := range source.Tables {
		content, err := os.ReadFile(filepath.Join(s.Dir, s.file(source, name)))
		if err != nil {
			return nil, "", false
		}
		table, about, err := ReadCSV(content)
		if err != nil || !s.fits(source, about) {
			return nil, "", false
		}
		data[name], note = table, about
	}
	return data, note, true
}

func (s *Session) fits(source *Source, note string) bool {
	for size := s.Size; size < sizes; size++ {
		if strings.HasPrefix(note, s.note(source, size)) {
			return true
		}
	}
	return false
}

// draw writes a section's pictures and keeps them for the report.
func (s *Session) draw(section *Section, data Data) error {
	for _, c := range section.Experiment.Charts(data) {
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			return err
		}
		section.Pictures = append(section.Pictures, inline(svg.String()))
		section.Files = append(section.Files, c.Name+".svg", c.Name+".png")
		if err := s.create(c.Name+".svg", func(w io.Writer) error { _, err := w.Write(svg.Bytes()); return err }); err !=
			nil {
			return err
		}
		if err := s.create(c.Name+".png", c.PNG); err != nil {
			return err
		}
	}
	return nil
}

// write writes the report and the claims.
func (s *Session) write(o *Outcome, present []Section) error {
	err := s.create("claims.json", func(w io.Writer) error { return WriteClaims(w, o.Claims) })
	if err != nil {
		return err
	}
	return s.create("report.html", func(w io.Writer) error { return writeReport(w, s, o.Claims, present) })
}

// WriteClaims writes claims as JSON.
func WriteClaims(w io.Writer, claims []Claim) error {
	if claims == nil {
		claims = []Claim{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(claims)
}

// create writes a file of the directory in full or not at all: what is there is
// finished.
func (s *Session) create(name string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	path := filepath.Join(s.Dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content.Bytes()) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(path+".part", content.Bytes(), 0o666); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
