package tpch_test

import (
	"fmt"

	"github.com/pleach-go/pleach/lab/tpch"
)

// Four tasks answer query 3, each over its share of the orders.
func ExampleQ3() {
	g, err := tpch.New(0.01)
	if err != nil {
		panic(err)
	}
	customers := g.Customers(0, g.NumCustomers())
	var rows []tpch.Q3Row
	for task := range 4 {
		orders, lines := g.Orders(tpch.Share(g.NumOrders(), task, 4))
		q := tpch.NewQ3(&customers)
		q.Add(&orders, &lines)
		rows = append(rows, q.Rows()...)
	}
	for _, r := range tpch.TopQ3(rows)[:3] {
		fmt.Printf("%d %d.%04d %v\n", r.OrderKey, r.Revenue/10_000, r.Revenue%10_000, r.OrderDate)
	}
	// Output:
	// 47714 267010.5894 1995-03-11
	// 22276 266351.5562 1995-01-29
	// 32965 263768.3414 1995-02-25
}

func ExampleGenerator_Orders() {
	g, err := tpch.New(1)
	if err != nil {
		panic(err)
	}
	_, lines := g.Orders(0, 1)
	for i := range lines.Len() {
		fmt.Println(lines.OrderKey[i], lines.PartKey[i], lines.SuppKey[i], lines.LineNumber[i], lines.Quantity[i],
			lines.ExtendedPrice[i], lines.ShipDate[i], lines.ShipMode[i])
	}
	// Output:
	// 1 155190 7706 1 17 2116823 1996-03-13 TRUCK
	// 1 67310 7311 2 36 4598316 1996-04-12 MAIL
	// 1 63700 3701 3 8 1330960 1996-01-29 REG AIR
	// 1 2132 4633 4 28 2895564 1996-04-21 AIR
	// 1 24027 1534 5 24 2282448 1996-03-30 FOB
	// 1 15635 638 6 32 4962016 1996-01-30 MAIL
}

func ExampleGenerator_Parts() {
	g, err := tpch.New(1)
	if err != nil {
		panic(err)
	}
	p, s, c := g.Parts(0, 1), g.PartSupps(0, 1), g.SupplierContacts(0, 1)
	fmt.Println(p.Name[0], p.Brand[0].Manufacturer(), p.Brand[0], p.Type[0], p.Size[0], p.Container[0], p.RetailPrice[0])
	fmt.Println(s.PartKey[0], s.SuppKey[0], s.AvailQty[0], s.SupplyCost[0])
	fmt.Println(tpch.SupplierName(1), c.Address[0], c.Phone[0], c.Balance[0])
	// Output:
	// goldenrod lavender spring chocolate lace Manufacturer#1 Brand#13 PROMO BURNISHED COPPER 7 JUMBO PKG 90100
	// 1 2 3325 77164
	// Supplier#000000001 sdrGnXCDRcfriBvY0KL,ipCanOTyK t NN1 27-918-335-1736 575594
}
