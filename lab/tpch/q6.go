package tpch

// Q6 is query 6, forecasting revenue change: the sum of small discounts of 1994. The zero
// value is ready to use.
type Q6 struct {
	Revenue int64 // in 1/100 cents
}

// Add adds lineitems to the query.
func (q *Q6) Add(l *Lineitems) {
	first, end := DateOf(1994, 1, 1), DateOf(1995, 1, 1)
	for i, shipped := range l.ShipDate {
		if shipped >= first && shipped < end && l.Discount[i] >= 5 && l.Discount[i] <= 7 && l.Quantity[i] < 24 {
			q.Revenue += l.ExtendedPrice[i] * int64(l.Discount[i])
		}
	}
}
