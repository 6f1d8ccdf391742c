package sql

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/sql/internal/duck"
)

// A file gets its name only when it is complete, and the directory its mark last. So a
// reader that sees the mark sees everything, whenever processes die.

// Marker is the name of the file that says that an output is complete. It has the number of
// files and rows, as JSON.
const Marker = "_SUCCESS"

// temporary begins the names of files that are not complete.
const temporary = ".unfinished-"

// formats are those of a file, by how its name ends.
var formats = map[string]string{".parquet": "parquet", ".csv": "csv", ".json": "json"}

// dir returns the directory where tasks write their files, or "".
func (j *Job) dir() string {
	if strings.HasSuffix(j.Out, "/") {
		return j.Out
	}
	if j.Plan != nil {
		return j.Plan.Stages[len(j.Plan.Stages)-1].To.Dir
	}
	return ""
}

// prepareOut creates the directory for the result. It returns an error if there is something
// in it, or if there is such a file.
func (j *Job) prepareOut() error {
	dir := j.dir()
	switch {
	case j.Out != "" && j.Plan != nil && dir != "":
		return fmt.Errorf("sql: %s: the plan says that it writes to %s, or that it does not: leave the directory out",
			j.Out, dir)
	case j.Out != "" && dir == "":
		if formats[filepath.Ext(j.Out)] == "" {
			return fmt.Errorf("sql: %s: a result is written to a file that ends with .parquet, .csv or .json, or to a directory that ends with /", j.Out)
		}
		if _, err := os.Stat(j.Out); err == nil {
			return fmt.Errorf("sql: %s is there already: choose a new name", j.Out)
		}
		return nil
	case dir == "":
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("sql: %s has files already, such as %s: choose a new or empty directory", dir, entries[0].Name())
	}
	return err
}

// write writes a file for each task. The input of the call is that the file is there, so
// the new owner of a task writes its file.
func (r *runner) write(ctx context.Context, i int, s Stage, sent func()) error {
	input := ahead(ctx, r, func(ctx context.Context, task int) (rows []byte, err error) {
		err = r.do(ctx, task, i, func(c *duck.Conn) error {
			n, err := writeFile(ctx, c, s.Query, s.To.Dir, fmt.Sprintf("part-%05d.parquet", task))
			rows = strconv.AppendInt(nil, n, 10)
			return err
		})
		if text, ok := r.failure(i, task, err); ok {
			return text, nil
		}
		return rows, err
	})
	own, err := input(ctx, r.Rank())
	if err != nil {
		return err
	}
	sent()
	all, err := collective.Allgather(ctx, r, own, r.options(collective.Restore(input))...)
	if err != nil {
		return err
	}
	r.result = &Result{}
	return r.written(all)
}

// written counts files and their rows, unless a task has sent an error.
func (r *runner) written(files [][]byte) error {
	if err := failureOf(files); err != nil {
		return err
	}
	for _, rows := range files {
		n, err := strconv.ParseInt(string(rows), 10, 64)
		if err != nil {
			return fmt.Errorf("sql: the number of rows in a file: %w", err)
		}
		r.result.Files++
		r.result.Written += n
	}
	return nil
}

// writeResult writes the result to its file: the owner of task 0 does.
func (r *runner) writeResult(ctx context.Context, s Stage) error {
	dir, name := filepath.Split(r.job.Out)
	input := func(ctx context.Context, task int) ([]byte, error) {
		if task != 0 {
			return nil, nil
		}
		rows, err := writeFile(ctx, r.shared, s.Query, cmp.Or(dir, "."), name)
		if text, ok := r.failure(len(r.job.Plan.Stages)-1, task, err); ok {
			return text, nil
		}
		return strconv.AppendInt(nil, rows, 10), err
	}
	own, err := input(ctx, r.Rank())
	if err != nil {
		return err
	}
	rows, err := collective.Broadcast(ctx, r, 0, own, r.options(collective.Restore(input))...)
	if err != nil {
		return err
	}
	return r.written([][]byte{rows})
}

func writeFile(ctx context.Context, c *duck.Conn, query, dir, name string) (rows int64, err error) {
	scratch, err := os.MkdirTemp(dir, temporary+name+"-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	file := filepath.Join(scratch, name)
	rows, err = c.ExecRows(ctx, duck.Copy(query, file, formats[filepath.Ext(name)]))
	if err != nil {
		return 0, err
	}
	return rows, os.Rename(file, filepath.Join(dir, name))
}

// completeOutput marks a directory as complete, or removes temporary files next to a file.
func (r *runner) completeOutput() error {
	if dir := r.job.dir(); dir != "" {
		return r.markOutput(dir)
	}
	if r.job.Out != "" {
		dir, name := filepath.Split(r.job.Out)
		return clean(cmp.Or(dir, "."), temporary+name+"-")
	}
	return nil
}

// clean removes what dead processes have left.
func clean(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// markOutput marks the output as complete, and removes what dead processes have left.
func (r *runner) markOutput(dir string) error {
	if err := clean(dir, temporary); err != nil {
		return err
	}
	mark, err := json.Marshal(struct {
		Files int   `json:"files"`
		Rows  int64 `json:"rows"`
	}{r.result.Files, r.result.Written})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, temporary+Marker)
	if err := os.WriteFile(file, append(mark, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file, filepath.Join(dir, Marker))
}
