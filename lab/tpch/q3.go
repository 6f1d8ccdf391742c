package tpch

import (
	"cmp"
	"slices"
)

// Q3 is query 3, shipping priority: the ten orders with the highest revenue that customers
// of the segment BUILDING had placed before 1995-03-15, and of which lines were shipped
// later.
type Q3 struct {
	customers []bool // by key: whether the customer is of the segment
	rows      []Q3Row
}

// Q3Row is a row of the answer.
type Q3Row struct {
	OrderKey     int64
	Revenue      int64 // in 1/100 cents
	OrderDate    Date
	ShipPriority int32
}

const q3Rows = 10

// NewQ3 returns the query over the orders of these customers. Orders of other customers do
// not count.
func NewQ3(customers *Customers) *Q3 {
	var q Q3
	for i, key := range customers.CustKey {
		if customers.Segment[i] == Building {
			q.customers = append(q.customers, make([]bool, max(0, int(key)+1-len(q.customers)))...)
			q.customers[key] = true
		}
	}
	return &q
}

// Add adds orders and all their lineitems to the query, as [Generator.Orders] returns them.
func (q *Q3) Add(o *Orders, l *Lineitems) {
	day := DateOf(1995, 3, 15)
	line := 0
	for i, key := range o.OrderKey {
		var revenue int64
		for ; line < l.Len() && l.OrderKey[line] == key; line++ {
			if l.ShipDate[line] > day {
				revenue += l.ExtendedPrice[line] * int64(100-l.Discount[line])
			}
		}
		customer := int(o.CustKey[i])
		if revenue > 0 && o.OrderDate[i] < day && customer < len(q.customers) && q.customers[customer] {
			q.rows = append(q.rows, Q3Row{key, revenue, o.OrderDate[i], o.ShipPriority[i]})
		}
	}
	q.rows = TopQ3(q.rows)
}

// Rows returns the answer for the orders that were added.
func (q *Q3) Rows() []Q3Row { return slices.Clone(q.rows) }

// TopQ3 sorts rows of several parts of the orders and returns the ten that are the answer.
func TopQ3(rows []Q3Row) []Q3Row {
	slices.SortFunc(rows, func(a, b Q3Row) int {
		return cmp.Or(cmp.Compare(b.Revenue, a.Revenue), cmp.Compare(a.OrderDate, b.OrderDate),
			cmp.Compare(a.OrderKey, b.OrderKey))
	})
	return rows[:min(len(rows), q3Rows)]
}
