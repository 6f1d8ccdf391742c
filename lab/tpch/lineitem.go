package tpch

func newLineitems(n int) Lineitems {
	return Lineitems{
		OrderKey: make([]int64, n), PartKey: make([]int32, n), SuppKey: make([]int32, n), LineNumber: make([]int32, n),
		Quantity: make([]int32, n), ExtendedPrice: make([]int64, n), Discount: make([]int32, n), Tax: make([]int32, n),
		ReturnFlag: make([]byte, n), LineStatus: make([]byte, n),
		ShipDate: make([]Date, n), CommitDate: make([]Date, n), ReceiptDate: make([]Date, n), ShipMode: make([]ShipMode, n),
		Instruction: make([]Instruction, n),
	}
}

// lineColumns are the streams of lineitem.
type lineColumns struct {
	quantity, discount, tax, shipMode, part, supplier, ship, commit, receipt, returnFlag, instruction lineColumn
}

func newLineColumns(order int) lineColumns {
	return lineColumns{
		quantity:    newLineColumn(209208115, order),
		discount:    newLineColumn(554590007, order),
		tax:         newLineColumn(721958466, order),
		shipMode:    newLineColumn(675466456, order),
		part:        newLineColumn(1808217256, order),
		supplier:    newLineColumn(2095021727, order),
		ship:        newLineColumn(1769349045, order),
		commit:      newLineColumn(904914315, order),
		receipt:     newLineColumn(373135028, order),
		returnFlag:  newLineColumn(717419739, order),
		instruction: newLineColumn(1371272478, order),
	}
}

func (c *lineColumns) nextOrder() {
	c.quantity.nextOrder()
	c.discount.nextOrder()
	c.tax.nextOrder()
	c.shipMode.nextOrder()
	c.part.nextOrder()
	c.supplier.nextOrder()
	c.ship.nextOrder()
	c.commit.nextOrder()
	c.receipt.nextOrder()
	c.returnFlag.nextOrder()
	c.instruction.nextOrder()
}

// line draws line i, which belongs to an order of that date.
func (c *lineColumns) line(l *Lineitems, i int, g Generator, ordered Date) {
	part, quantity := c.part.draw(1, g.parts), c.quantity.draw(1, 50)
	l.PartKey[i] = int32(part)
	l.SuppKey[i] = int32(g.supplierOf(part, c.supplier.draw(0, 3)))
	l.Quantity[i] = int32(quantity)
	l.ExtendedPrice[i] = int64(quantity) * retailPrice(part)
	l.Discount[i] = int32(c.discount.draw(0, 10))
	l.Tax[i] = int32(c.tax.draw(0, 8))
	l.Instruction[i] = Instruction(c.instruction.draw(0, len(instructions)-1))
	l.ShipMode[i] = ShipMode(c.shipMode.draw(0, len(shipModes)-1))
	l.ShipDate[i] = ordered + Date(c.ship.draw(1, 121))
	l.CommitDate[i] = ordered + Date(c.commit.draw(30, 90))
	l.ReceiptDate[i] = l.ShipDate[i] + Date(c.receipt.draw(1, 30))
	l.LineStatus[i] = 'O'
	if l.ShipDate[i] <= currentDate {
		l.LineStatus[i] = 'F'
	}
	l.ReturnFlag[i] = 'N'
	if l.ReceiptDate[i] <= currentDate { // A line that was not received draws no flag.
		l.ReturnFlag[i] = "RA"[c.returnFlag.draw(0, 1)]
	}
}

// supplierOf returns one of the four suppliers of a part.
func (g Generator) supplierOf(part, which int) int {
	s := g.suppliers
	return (part+which*(s/4+(part-1)/s))%s + 1
}

// retailPrice returns the price of a part in cents.
func retailPrice(part int) int64 { return int64(90_000 + part/10%20_001 + 100*(part%1000)) }
