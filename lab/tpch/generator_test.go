package tpch

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// The tables do not depend on the parts in which they are generated.
func TestPartsAreTheWhole(t *testing.T) {
	g, err := New(0.001)
	if err != nil {
		t.Fatal(err)
	}
	orders, lines := g.Orders(0, g.NumOrders())
	customers := g.Customers(0, g.NumCustomers())
	suppliers := g.Suppliers(0, g.NumSuppliers())
	parts := g.Parts(0, g.NumParts())
	offers := g.PartSupps(0, g.NumParts())
	contacts := g.CustomerContacts(0, g.NumCustomers())
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 40).Draw(t, "tasks")
		var (
			o Orders
			l Lineitems
			c Customers
			s Suppliers
			p Parts
			f PartSupps
			a Contacts
		)
		for task := range tasks {
			someOrders, someLines := g.Orders(Share(g.NumOrders(), task, tasks))
			o, l = concat(o, someOrders), concat(l, someLines)
			c = concat(c, g.Customers(Share(g.NumCustomers(), task, tasks)))
			s = concat(s, g.Suppliers(Share(g.NumSuppliers(), task, tasks)))
			p = concat(p, g.Parts(Share(g.NumParts(), task, tasks)))
			f = concat(f, g.PartSupps(Share(g.NumParts(), task, tasks)))
			a = concat(a, g.CustomerContacts(Share(g.NumCustomers(), task, tasks)))
		}
		equal(t, o, orders)
		equal(t, l, lines)
		equal(t, c, customers)
		equal(t, s, suppliers)
		equal(t, p, parts)
		equal(t, f, offers)
		equal(t, a, contacts)
	})
}

// Any range of orders is that range of the whole table, also far from the beginning.
func TestRangeIsAPartOfTheTable(t *testing.T) {
	g, err := New(100)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, g.NumOrders()-300).Draw(t, "first")
		n := rapid.IntRange(0, 200).Draw(t, "n")
		skip := rapid.IntRange(0, 100).Draw(t, "skip")
		whole, _ := g.Orders(first, first+skip+n)
		part, _ := g.Orders(first+skip, first+skip+n)
		equal(t, part.TotalPrice, whole.TotalPrice[skip:])
		equal(t, part.CustKey, whole.CustKey[skip:])
		equal(t, part.OrderKey, whole.OrderKey[skip:])
	})
}

// The answers do not depend on the parts, either.
func TestQueriesAddUp(t *testing.T) {
	g, err := New(0.002)
	if err != nil {
		t.Fatal(err)
	}
	customers := g.Customers(0, g.NumCustomers())
	var q1 Q1
	var q6 Q6
	q3 := NewQ3(&customers)
	o, l := g.Orders(0, g.NumOrders())
	q1.Add(&l)
	q3.Add(&o, &l)
	q6.Add(&l)
	if len(q1.Rows()) != 4 || len(q3.Rows()) != 10 || q6.Revenue == 0 {
		t.Fatalf("query 1 has %d rows, query 3 %d, query 6 is %d", len(q1.Rows()), len(q3.Rows()), q6.Revenue)
	}
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 20).Draw(t, "tasks")
		var some1 Q1
		var some6 Q6
		var rows []Q3Row
		for task := range tasks {
			o, l := g.Orders(Share(g.NumOrders(), task, tasks))
			some1.Add(&l)
			some6.Add(&l)
			some3 := NewQ3(&customers)
			some3.Add(&o, &l)
			rows = append(rows, some3.Rows()...)
		}
		equal(t, some1.Rows(), q1.Rows())
		equal(t, some6, q6)
		equal(t, TopQ3(rows), q3.Rows())
	})
}

func TestScaleFactors(t *testing.T) {
	for _, scale := range []float64{0, -1, 0.0009, 10_001, math.NaN(), math.Inf(1)} {
		if _, err := New(scale); err == nil {
			t.Errorf("scale factor %v is accepted", scale)
		}
	}
	for scale, orders := range map[float64]int{0.001: 1500, 0.1: 150_000, 10: 15_000_000} {
		if g, err := New(scale); err != nil || g.NumOrders() != orders {
			t.Errorf("scale factor %v: %d orders, %v, want %d", scale, g.NumOrders(), err, orders)
		}
	}
}

func TestRowsOutsideTheTable(t *testing.T) {
	g, err := New(0.001)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int{{-1, 1}, {2, 1}, {0, 1501}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("orders %v are generated", r)
				}
			}()
			g.Orders(r[0], r[1])
		}()
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{DateOf(1995, 3, 15).String(), "1995-03-15"},
		{startDate.String(), "1992-01-01"},
		{currentDate.String(), "1995-06-17"},
		{Building.String(), "BUILDING"},
		{NotSpecified.String(), "4-NOT SPECIFIED"},
		{FOB.String(), "FOB"},
		{PartType(0).String(), "STANDARD ANODIZED TIN"},
		{PartType(149).String(), "PROMO BRUSHED COPPER"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func BenchmarkOrders(b *testing.B) {
	g, err := New(1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g.Orders(0, 10_000)
	}
}

// concat appends the columns of a table to those of another one.
func concat[T any](a, b T) T {
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(b)
	for i := range va.NumField() {
		va.Field(i).Set(reflect.AppendSlice(va.Field(i), vb.Field(i)))
	}
	return a
}

func equal[T any](t *rapid.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%T of the parts differs from that of the whole", got)
	}
}
