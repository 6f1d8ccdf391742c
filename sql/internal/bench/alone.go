package bench

import (
	"context"
	"time"

	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/duck"
	"github.com/pleach-go/pleach/sql/internal/queries"
)

// threads is what the DuckDB that a job is compared with computes with.
const threads = 2

// alone runs a query with one DuckDB over all parts, and returns how long it took. Opening
// the database does not count, because processes do that before the job begins, too.
func alone(ctx context.Context, data *dataset.Dataset, query string) (took time.Duration, err error) {
	text, err := queries.SQL(query)
	if err != nil {
		return 0, err
	}
	tables, err := data.Tables(ctx, 0, 1)
	if err != nil {
		return 0, err
	}
	db, err := duck.Open(threads)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	for table, files := range tables {
		if err := conn.Exec(ctx, duck.ParquetView(table, files)); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	_, _, err = conn.Text(ctx, text)
	return time.Since(began), err
}
