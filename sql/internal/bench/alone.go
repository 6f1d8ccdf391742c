package bench

import (
	"context"

	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/queries"
)

// threads is what the DuckDB that a job is compared with computes with.
const threads = 2

// alone runs the query with one DuckDB over all parts. Opening the database does not count,
// because the processes of a job do that before it begins, too.
func (w *Work) alone(ctx context.Context, data *dataset.Dataset, t *teller) error {
	query, err := queries.SQL(w.Query)
	if err != nil {
		return err
	}
	tables, err := data.Tables(ctx, 0, 1)
	if err != nil {
		return err
	}
	db, err := duck.Open(threads)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for table, files := range tables {
		if err := conn.Exec(ctx, duck.ParquetView(table, files)); err != nil {
			return err
		}
	}
	t.tell("query", nil)
	_, rows, err := conn.Text(ctx, query)
	if err == nil {
		t.tell(done, rows)
	}
	return err
}
