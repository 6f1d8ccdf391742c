package tpch

import (
	"cmp"
	"slices"
)

// Q1 is query 1, the pricing summary report: sums over almost all lineitems, by flag and
// status. The zero value is ready to use.
type Q1 struct{ groups [2][256]Q1Row }

// Q1Row is a row of the answer. The sums fit up to scale factor 100.
type Q1Row struct {
	ReturnFlag, LineStatus byte
	Quantity               int64
	BasePrice              int64 // sum of the extended price, in cents
	DiscountedPrice        int64 // in 1/100 cents
	Charge                 int64 // with tax, in 1/10,000 cents
	Discount               int64 // sum, in percent
	Count                  int64
}

// Add adds lineitems to the query.
func (q *Q1) Add(l *Lineitems) {
	last := DateOf(1998, 12, 1) - 90
	for i, shipped := range l.ShipDate {
		if shipped > last {
			continue
		}
		open := 0
		if l.LineStatus[i] == 'O' {
			open = 1
		}
		price := l.ExtendedPrice[i] * int64(100-l.Discount[i])
		r := &q.groups[open][l.ReturnFlag[i]]
		r.Quantity += int64(l.Quantity[i])
		r.BasePrice += l.ExtendedPrice[i]
		r.DiscountedPrice += price
		r.Charge += price * int64(100+l.Tax[i])
		r.Discount += int64(l.Discount[i])
		r.Count++
	}
}

// Rows returns the answer for the lineitems that were added, by flag and status.
func (q *Q1) Rows() []Q1Row {
	var rows []Q1Row
	for open, flags := range q.groups {
		for flag, r := range flags {
			if r.Count > 0 {
				r.ReturnFlag, r.LineStatus = byte(flag), "FO"[open]
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b Q1Row) int {
		return cmp.Or(cmp.Compare(a.ReturnFlag, b.ReturnFlag), cmp.Compare(a.LineStatus, b.LineStatus))
	})
	return rows
}
