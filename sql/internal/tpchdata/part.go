package tpchdata

import (
	"context"
	"fmt"

	"github.com/pleach-go/pleach/internal/tpch"
	"github.com/pleach-go/pleach/sql/internal/duck"
)

// part is a part of all tables.
type part struct {
	customers tpch.Customers
	orders    tpch.Orders
	lines     tpch.Lineitems
}

func newPart(g tpch.Generator, number, parts int) (p part) {
	p.customers = g.Customers(tpch.Share(g.NumCustomers(), number, parts))
	p.orders, p.lines = g.Orders(tpch.Share(g.NumOrders(), number, parts))
	return p
}

var tableNames = [...]string{"customer", "orders", "lineitem"}

// view is what statements call the Arrow columns of a table.
const view = "pleach_columns"

// write writes a file for each table.
func (p *part) write(ctx context.Context, file func(table string) string) error {
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
	makers := [len(tableNames)]func() (table, string){
		func() (table, string) { return customerTable(&p.customers) },
		func() (table, string) { return ordersTable(&p.orders) },
		func() (table, string) { return lineitemTable(&p.lines) },
	}
	for i, name := range tableNames {
		t, query := makers[i]()
		if err := t.write(ctx, conn, query, file(name)); err != nil {
			return fmt.Errorf("tpchdata: table %s: %w", name, err)
		}
	}
	return nil
}

func (t *table) write(ctx context.Context, conn *duck.Conn, query, file string) error {
	rows, err := t.rows()
	if err != nil {
		return err
	}
	defer rows.Release()
	return conn.View(ctx, view, rows, duck.Copy(query, file))
}
