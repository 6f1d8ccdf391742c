package tpch

import "fmt"

// Rows at scale factor 1.
const (
	customersPerScale = 150_000
	ordersPerScale    = 1_500_000
	partsPerScale     = 200_000
	suppliersPerScale = 10_000
)

// maxLines is the largest number of lines in an order.
const maxLines = 7

// maxScale keeps the keys of parts within 32 bits. dbgen draws keys otherwise from scale
// factor 30,000 on.
const maxScale = 10_000

// minScale is the smallest scale factor with several suppliers for a part.
const minScale = 0.001

// Generator generates the tables at one scale factor. It has no state, and copies of it
// generate the same rows.
type Generator struct{ customers, orders, parts, suppliers int }

// New returns the generator for a scale factor between 0.001 and 10,000.
func New(scale float64) (Generator, error) {
	if !(scale >= minScale && scale <= maxScale) {
		return Generator{}, fmt.Errorf("tpch: scale factor %v: choose one between %v and %v", scale, minScale, maxScale)
	}
	rows := func(base float64) int { return int(base * scale) }
	return Generator{
		customers: rows(customersPerScale), orders: rows(ordersPerScale),
		parts: rows(partsPerScale), suppliers: rows(suppliersPerScale),
	}, nil
}

// NumCustomers returns the number of rows of customer.
func (g Generator) NumCustomers() int { return g.customers }

// NumOrders returns the number of rows of orders. Each has one to seven lineitems.
func (g Generator) NumOrders() int { return g.orders }

// NumParts returns the number of rows of part.
func (g Generator) NumParts() int { return g.parts }

// NumSuppliers returns the number of rows of supplier.
func (g Generator) NumSuppliers() int { return g.suppliers }

// Share returns the rows from first to before end that are a task's share of a table:
// contiguous, and as large as those of other tasks or one row larger.
func Share(rows, task, tasks int) (first, end int) {
	return rows * task / tasks, rows * (task + 1) / tasks
}

// checkRange panics as slicing does.
func checkRange(table string, first, end, rows int) {
	if first < 0 || end < first || end > rows {
		panic(fmt.Sprintf("tpch: rows [%d:%d] of %s, which has %d", first, end, table, rows))
	}
}
