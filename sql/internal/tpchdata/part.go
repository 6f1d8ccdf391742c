package tpchdata

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/sql/internal/duck"
)

var tableNames = append(slices.Sorted(maps.Keys(makers)), "orders", "lineitem")

// view is what statements call the Arrow columns of a table.
const view = "pleach_columns"

// write writes a file for each table.
func (s *share) write(ctx context.Context, file func(table string) string) error {
	db, err := duck.Open(1)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	save := func(name string, t table, query string) error {
		if err := t.write(ctx, conn, query, file(name)); err != nil {
			return fmt.Errorf("tpchdata: table %s: %w", name, err)
		}
		return nil
	}
	for name, table := range makers {
		t, query := table(s)
		if err := save(name, t, query); err != nil {
			return err
		}
	}
	orders, lines := s.generator.Orders(s.rows(s.generator.NumOrders()))
	t, query := ordersTable(&orders)
	if err := save("orders", t, query); err != nil {
		return err
	}
	t, query = lineitemTable(&lines)
	return save("lineitem", t, query)
}

func (t *table) write(ctx context.Context, conn *duck.Conn, query, file string) error {
	rows, err := t.rows()
	if err != nil {
		return err
	}
	defer rows.Release()
	return conn.View(ctx, view, rows, duck.Copy(query, file, "parquet"))
}
