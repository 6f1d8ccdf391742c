//go:build duckdb_arrow

package duck

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"
)

// DB is a DuckDB in memory.
type DB struct{ connector *duckdb.Connector }

// settings are those of every database but the number of threads. join_filter_pushdown of DuckDB
// 1.5.5 moves a condition below ORDER BY … LIMIT of a join, so that other rows are in the result
// (TestLimitComesBeforeConditions).
var settings = []string{"SET disabled_optimizers = 'join_filter_pushdown'"}

// Open opens a DuckDB that computes with so many threads.
func Open(threads int) (*DB, error) {
	connector, err := duckdb.NewConnector("", func(driver.ExecerContext) error { return nil })
	if err != nil {
		return nil, err
	}
	db := &DB{connector}
	for _, statement := range append([]string{fmt.Sprintf("SET threads = %d", threads)}, settings...) {
		if err := db.set(statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// set executes a statement in a connection of its own.
func (db *DB) set(statement string) error {
	conn, err := db.Connect(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(conn.Exec(context.Background(), statement), conn.Close())
}

// Close closes the database. Its connections are to be closed before.
func (db *DB) Close() error { return db.connector.Close() }

// Conn is a connection. One goroutine uses it at a time.
type Conn struct {
	conn  *duckdb.Conn
	arrow *duckdb.Arrow
}

// Connect opens a connection.
func (db *DB) Connect(ctx context.Context) (*Conn, error) {
	opened, err := db.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(*duckdb.Conn)
	if !ok {
		return nil, fmt.Errorf("duck: a connection is a %T", opened)
	}
	arrow, err := duckdb.NewArrowFromConn(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Conn{conn, arrow}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Exec executes a statement.
func (c *Conn) Exec(ctx context.Context, statement string) error {
	_, err := c.ExecRows(ctx, statement)
	return err
}

// ExecRows executes a statement, and returns how many rows it has written.
func (c *Conn) ExecRows(ctx context.Context, statement string) (rows int64, err error) {
	result, err := c.conn.ExecContext(ctx, statement, nil)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Check returns the error that a statement has before it runs, if any.
func (c *Conn) Check(ctx context.Context, statement string) error {
	s, err := c.conn.PrepareContext(ctx, statement)
	if err != nil {
		return err
	}
	return s.Close()
}

// Query returns the rows of a query. The caller releases the reader.
func (c *Conn) Query(ctx context.Context, query string) (array.RecordReader, error) {
	return c.arrow.QueryContext(ctx, query)
}

// View executes a statement that may read the rows of a reader, once, by a name.
func (c *Conn) View(ctx context.Context, name string, rows array.RecordReader, statement string) error {
	release, err := c.arrow.RegisterView(rows, name)
	if err != nil {
		return err
	}
	defer release()
	return errors.Join(c.Exec(ctx, statement), c.Exec(context.WithoutCancel(ctx), "DROP VIEW "+Identifier(name)))
}

// Load creates a table of a reader's rows.
func (c *Conn) Load(ctx context.Context, table string, rows array.RecordReader) error {
	view := table + " (received)" // which no table of the source is called
	return c.View(ctx, view, rows, fmt.Sprintf("CREATE OR REPLACE TABLE %s AS FROM %s", Identifier(table),
		Identifier(view)))
}
