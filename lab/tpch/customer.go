package tpch

// The small tables, which orders and lineitems refer to. Keys count from 1.

// Customers are rows of customer. All columns have the same length.
type Customers struct {
	CustKey   []int32
	NationKey []int32 // an index of Nations
	Segment   []Segment
}

// Suppliers are rows of supplier. All columns have the same length.
type Suppliers struct {
	SuppKey   []int32
	NationKey []int32 // an index of Nations
}

// Customers returns the customers from row first to before row end, counted from 0. It
// panics if there are no such rows.
func (g Generator) Customers(first, end int) Customers {
	checkRange("customer", first, end, g.customers)
	c := Customers{
		CustKey: keys(first, end), NationKey: nationKeys(1489529863, first, end),
		Segment: make([]Segment, end-first),
	}
	segment := newColumn(1140279430, first)
	for i := range c.Segment {
		c.Segment[i] = Segment(segment.draw(0, len(segments)-1))
	}
	return c
}

// Suppliers returns the suppliers from row first to before row end, counted from 0. It
// panics if there are no such rows.
func (g Generator) Suppliers(first, end int) Suppliers {
	checkRange("supplier", first, end, g.suppliers)
	return Suppliers{SuppKey: keys(first, end), NationKey: nationKeys(110356601, first, end)}
}

func keys(first, end int) []int32 {
	k := make([]int32, end-first)
	for i := range k {
		k[i] = int32(first + i + 1)
	}
	return k
}

func nationKeys(seed lehmer, first, end int) []int32 {
	column := newColumn(seed, first)
	k := make([]int32, end-first)
	for i := range k {
		k[i] = int32(column.draw(0, len(nations)-1))
	}
	return k
}
