package tables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

// Config says what to import.
type Config struct {
	// Files are those of each table: a name in which * stands for any characters.
	Files           map[string]string
	Parts, Replicas int
	Dir             string // new or empty
	// Progress, if not nil, is called with the number of parts of tables that are done.
	Progress func(parts int)
}

// readers are the functions that read files, by how their names end. Types of CSV columns are
// found out from all rows, so that each part has the same.
var readers = []struct{ end, call string }{
	{".parquet", "read_parquet(%s)"},
	{".csv", "read_csv(%s, sample_size = -1)"},
	{".csv.gz", "read_csv(%s, sample_size = -1)"},
	{".tsv", "read_csv(%s, sample_size = -1)"},
}

func reader(files string) (string, error) {
	for _, r := range readers {
		if strings.HasSuffix(files, r.end) {
			return fmt.Sprintf(r.call, duck.Literal(files)), nil
		}
	}
	return "", fmt.Errorf("%s: files end with .parquet, .csv, .csv.gz or .tsv", files)
}

// importer has the rows of one table after the other in a DuckDB.
type importer struct {
	Config
	*Set
	conn *duck.Conn
	done int
}

// Import writes a dataset of the rows of files. It returns the number of rows of each table. If it fails,
// it leaves nothing.
func Import(ctx context.Context, c Config) (rows map[string]int64, err error) {
	s, err := New(c.Dir, c.Parts, c.Replicas, slices.Sorted(maps.Keys(c.Files)))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Discard())
		}
	}()
	const threads = 2
	db, err := duck.Open(threads)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	i := &importer{Config: c, Set: s, conn: conn}
	rows = make(map[string]int64)
	for table, files := range c.Files {
		rows[table], err = i.table(ctx, table, files)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", table, err)
		}
	}
	return rows, i.Publish()
}

func (i *importer) table(ctx context.Context, table, files string) (int64, error) {
	from, err := reader(files)
	if err != nil {
		return 0, err
	}
	const rows = "pleach_import"
	if err := i.conn.Exec(ctx, "CREATE OR REPLACE TABLE "+rows+" AS FROM "+from); err != nil {
		return 0, err
	}
	_, counted, err := i.conn.Text(ctx, "SELECT count(*) FROM "+rows)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(counted[0][0], 10, 64)
	if err != nil {
		return 0, err
	}
	for part := range i.Config.Parts {
		first, end := n*int64(part)/int64(i.Config.Parts), n*int64(part+1)/int64(i.Config.Parts)
		query := fmt.Sprintf("FROM %s WHERE rowid >= %d AND rowid < %d", rows, first, end)
		if err := i.conn.Exec(ctx, duck.Copy(query, i.File(table, part), "parquet")); err != nil {
			return 0, err
		}
		if err := i.Written(table, part); err != nil {
			return 0, err
		}
		i.done++
		if i.Progress != nil {
			i.Progress(i.done)
		}
	}
	return n, nil
}
