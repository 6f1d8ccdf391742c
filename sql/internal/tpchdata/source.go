package tpchdata

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pleach-go/pleach/lab/tpch"
)

// Source generates the tables of a job: each task its part, into files in a directory of its
// process. The new owner of a task generates the task's part again.
type Source struct {
	generator tpch.Generator
	dir       string
}

// NewSource returns the tables at a scale factor. The files are in a directory that the
// caller removes.
func NewSource(scale float64, dir string) (*Source, error) {
	g, err := tpch.New(scale)
	return &Source{g, dir}, err
}

// Tables generates a task's part, and returns its files by table.
func (s *Source) Tables(ctx context.Context, task, tasks int) (map[string][]string, error) {
	dir := filepath.Join(s.dir, strconv.Itoa(task))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	tables := make(map[string][]string)
	for _, name := range tableNames {
		tables[name] = []string{filepath.Join(dir, name+".parquet")}
	}
	part := share{s.generator, task, tasks}
	return tables, part.write(ctx, func(table string) string { return tables[table][0] })
}
