package tpch

// Orders are rows of orders. All columns have the same length.
type Orders struct {
	OrderKey     []int64 // ascending, with gaps
	CustKey      []int32
	Status       []byte  // F if all lines have status F, O if all have O, else P
	TotalPrice   []int64 // in cents
	OrderDate    []Date
	Priority     []Priority
	ShipPriority []int32 // always 0
}

// Lineitems are rows of lineitem, by order. All columns have the same length.
type Lineitems struct {
	OrderKey      []int64
	PartKey       []int32
	SuppKey       []int32
	LineNumber    []int32 // from 1 on in each order
	Quantity      []int32
	ExtendedPrice []int64 // in cents
	Discount      []int32 // in percent
	Tax           []int32 // in percent
	ReturnFlag    []byte  // R or A if the line was received by 1995-06-17, else N
	LineStatus    []byte  // F if the line was shipped by 1995-06-17, else O
	ShipDate      []Date
	CommitDate    []Date
	ReceiptDate   []Date
	ShipMode      []ShipMode
	Instruction   []Instruction
}

// Len returns the number of rows.
func (o *Orders) Len() int { return len(o.OrderKey) }

// Len returns the number of rows.
func (l *Lineitems) Len() int { return len(l.OrderKey) }

// Days of the specification.
const (
	startDate   Date = 8035             // 1992-01-01, the first order
	currentDate Date = startDate + 1263 // 1995-06-17
	orderDays        = 2557 - 121 - 30  // the last line is received in 1998
)

// Orders returns the orders from row first to before row end, counted from 0, and their
// lineitems. It panics if there are no such rows.
func (g Generator) Orders(first, end int) (Orders, Lineitems) {
	checkRange("orders", first, end, g.orders)
	n := end - first
	o := Orders{
		OrderKey: make([]int64, n), CustKey: make([]int32, n), Status: make([]byte, n), TotalPrice: make([]int64, n),
		OrderDate: make([]Date, n), Priority: make([]Priority, n), ShipPriority: make([]int32, n),
	}
	counts, lines := countLines(first, n)
	l := newLineitems(lines)
	var (
		customer = newColumn(851767375, first)
		date     = newColumn(1066728069, first)
		priority = newColumn(591449447, first)
		columns  = newLineColumns(first)
	)
	at := 0
	for i := range n {
		o.OrderKey[i] = orderKey(first + i + 1)
		o.CustKey[i] = int32(g.customerWithOrders(customer.draw(1, g.customers)))
		o.OrderDate[i] = startDate + Date(date.draw(0, orderDays-1))
		o.Priority[i] = Priority(priority.draw(0, len(priorities)-1))
		shipped := 0
		for number := range int(counts[i]) {
			l.OrderKey[at], l.LineNumber[at] = o.OrderKey[i], int32(number+1)
			columns.line(&l, at, g, o.OrderDate[i])
			o.TotalPrice[i] += l.charge(at)
			if l.LineStatus[at] == 'F' {
				shipped++
			}
			at++
		}
		o.Status[i] = orderStatus(shipped, int(counts[i]))
		columns.nextOrder()
	}
	return o, l
}

// countLines draws how many lines each of n orders has.
func countLines(first, n int) (counts []uint8, sum int) {
	column := newColumn(1434868289, first)
	counts = make([]uint8, n)
	for i := range counts {
		counts[i] = uint8(column.draw(1, maxLines))
		sum += int(counts[i])
	}
	return counts, sum
}

// orderKey returns the key of an order, counted from 1. Only the first eight of 32 keys
// are used.
func orderKey(i int) int64 { return int64(i>>3<<5 | i&7) }

// customerWithOrders returns the customer whose order it is, for one that was drawn: a
// third of the customers has no orders.
func (g Generator) customerWithOrders(key int) int {
	for step := 1; key%3 == 0; step = -step {
		key = min(key+step, g.customers)
	}
	return key
}

// charge returns what a line adds to the order's total, in cents, rounded down after each
// step.
func (l *Lineitems) charge(i int) int64 {
	discounted := l.ExtendedPrice[i] * int64(100-l.Discount[i]) / 100
	return discounted * int64(100+l.Tax[i]) / 100
}

func orderStatus(shipped, lines int) byte {
	switch shipped {
	case lines:
		return 'F'
	case 0:
		return 'O'
	}
	return 'P'
}
