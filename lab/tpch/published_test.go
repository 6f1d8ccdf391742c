package tpch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The specification publishes the answers of its queries at scale factor 1. All columns
// that this package has contribute to one of them, so equal answers mean equal data.
func TestPublishedAnswers(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("one goroutine: the race detector has nothing to find, and takes long")
	}
	g, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	a := newAnswers(g)
	lines := 0
	const parts = 16
	for part := range parts {
		o, l := g.Orders(Share(g.NumOrders(), part, parts))
		lines += l.Len()
		a.add(&o, &l)
	}
	if lines != 6_001_215 {
		t.Errorf("%d lineitems, want 6,001,215", lines)
	}
	for _, c := range []struct{ query, got, want string }{
		{"1", a.printQ1(), `
A F 37734107.00 56586554400.73 53758257134.87 55909065222.83 25.52 38273.13 0.05 1478493
N F 991417.00 1487504710.38 1413082168.05 1469649223.19 25.52 38284.47 0.05 38854
N O 74476040.00 111701729697.74 106118230307.61 110367043872.50 25.50 38249.12 0.05 2920374
R F 37719753.00 56568041380.90 53741292684.60 55889619119.83 25.51 38250.85 0.05 1478870`},
		{"3", a.printQ3(), `
2456423 406181.0111 1995-03-05 0
3459808 405838.6989 1995-03-04 0
492164 390324.0610 1995-02-19 0
1188320 384537.9359 1995-03-09 0
2435712 378673.0558 1995-02-26 0
4878020 378376.7952 1995-03-12 0
5521732 375153.9215 1995-03-13 0
2628192 373133.3094 1995-02-22 0
993600 371407.4595 1995-03-05 0
2300070 367371.1452 1995-03-13 0`},
		{"5", a.printQ5(), `
INDONESIA 55502041.1697
VIETNAM 55295086.9967
CHINA 53724494.2566
INDIA 52035512.0002
JAPAN 45410175.6954`},
		{"6", "\n" + rounded(a.q6.Revenue, 10_000), "\n123141078.23"},
		{"12", a.printQ12(), `
MAIL 6202 9324
SHIP 6200 9262`},
		{"14", fmt.Sprintf("\n%.2f", 100*float64(a.promo)/float64(a.promo+a.other)), "\n16.38"},
		{"18", a.printQ18(), `
57 rows
Customer#000128120 4722021 1994-04-07 544089.09 323
Customer#000144617 3043270 1997-02-12 530604.44 317
Customer#000088703 2995076 1994-01-30 363812.12 302`},
	} {
		if c.got != c.want {
			t.Errorf("query %s:%s\nwant%s", c.query, c.got, c.want)
		}
	}
}

// answers adds up the queries whose answers are compared. Those that the package does not
// export are here.
type answers struct {
	q1         Q1
	q3         *Q3
	q6         Q6
	customers  Customers
	suppliers  Suppliers
	parts      Parts
	revenue    [25]int64 // of query 5, by nation
	high, low  [len(shipModes)]int
	promo      int64
	other      int64
	large      []string // of query 18, in order of total price after sorting
	totalPrice map[string]int64
}

func newAnswers(g Generator) *answers {
	a := &answers{
		customers: g.Customers(0, g.NumCustomers()), suppliers: g.Suppliers(0, g.NumSuppliers()),
		parts:      g.Parts(0, g.NumParts()),
		totalPrice: make(map[string]int64),
	}
	a.q3 = NewQ3(&a.customers)
	return a
}

func (a *answers) add(o *Orders, l *Lineitems) {
	a.q1.Add(l)
	a.q3.Add(o, l)
	a.q6.Add(l)
	line := 0
	for i, key := range o.OrderKey {
		quantity := 0
		for ; line < l.Len() && l.OrderKey[line] == key; line++ {
			quantity += int(l.Quantity[line])
			a.addQ5(o, i, l, line)
			a.addQ12(o, i, l, line)
			a.addQ14(l, line)
		}
		if quantity > 300 {
			row := fmt.Sprintf("%s %d %v %s %d", CustomerName(o.CustKey[i]), key, o.OrderDate[i], rounded(o.TotalPrice[i], 100),
				quantity)
			a.large = append(a.large, row)
			a.totalPrice[row] = o.TotalPrice[i]
		}
	}
}

func (a *answers) addQ5(o *Orders, i int, l *Lineitems, line int) {
	nation := a.customers.NationKey[o.CustKey[i]-1]
	if d := o.OrderDate[i]; d >= DateOf(1994, 1, 1) && d < DateOf(1995, 1, 1) &&
		nation == a.suppliers.NationKey[l.SuppKey[line]-1] {
		a.revenue[nation] += l.ExtendedPrice[line] * int64(100-l.Discount[line])
	}
}

func (a *answers) addQ12(o *Orders, i int, l *Lineitems, line int) {
	received := l.ReceiptDate[line]
	if l.ShipDate[line] >= l.CommitDate[line] || l.CommitDate[line] >= received || received < DateOf(1994, 1, 1) ||
		received >= DateOf(1995, 1, 1) {
		return
	}
	if p := o.Priority[i]; p == Urgent || p == High {
		a.high[l.ShipMode[line]]++
	} else {
		a.low[l.ShipMode[line]]++
	}
}

func (a *answers) addQ14(l *Lineitems, line int) {
	if d := l.ShipDate[line]; d < DateOf(1995, 9, 1) || d >= DateOf(1995, 10, 1) {
		return
	}
	price := l.ExtendedPrice[line] * int64(100-l.Discount[line])
	if kind := a.parts.Type[l.PartKey[line]-1]; kind.Promo() {
		a.promo += price
	} else {
		a.other += price
	}
}

func (a *answers) printQ1() string {
	var b strings.Builder
	for _, r := range a.q1.Rows() {
		n := float64(r.Count)
		fmt.Fprintf(&b, "\n%c %c %d.00 %s %s %s %.2f %.2f %.2f %d", r.ReturnFlag, r.LineStatus, r.Quantity,
			rounded(r.BasePrice, 100), rounded(r.DiscountedPrice, 10_000), rounded(r.Charge, 1_000_000),
			float64(r.Quantity)/n, float64(r.BasePrice)/100/n, float64(r.Discount)/100/n, r.Count)
	}
	return b.String()
}

func (a *answers) printQ3() string {
	var b strings.Builder
	for _, r := range a.q3.Rows() {
		fmt.Fprintf(&b, "\n%d %d.%04d %v %d", r.OrderKey, r.Revenue/10_000, r.Revenue%10_000, r.OrderDate, r.ShipPriority)
	}
	return b.String()
}

func (a *answers) printQ5() string {
	keys := make([]int, 0, len(a.revenue))
	for key, n := range Nations() {
		if n.Region == "ASIA" {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y int) int { return cmp.Compare(a.revenue[y], a.revenue[x]) })
	var b strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&b, "\n%s %d.%04d", Nations()[key].Name, a.revenue[key]/10_000, a.revenue[key]%10_000)
	}
	return b.String()
}

func (a *answers) printQ12() string {
	var b strings.Builder
	for _, m := range []ShipMode{Mail, Ship} {
		fmt.Fprintf(&b, "\n%v %d %d", m, a.high[m], a.low[m])
	}
	return b.String()
}

// printQ18 prints the number of rows, the first two and the last.
func (a *answers) printQ18() string {
	slices.SortFunc(a.large, func(x, y string) int { return cmp.Compare(a.totalPrice[y], a.totalPrice[x]) })
	n := len(a.large)
	if n < 3 {
		return fmt.Sprintf("\n%d rows", n)
	}
	return fmt.Sprintf("\n%d rows\n%s\n%s\n%s", n, a.large[0], a.large[1], a.large[n-1])
}

// rounded prints a sum in units of 1/scale with two digits, rounded half up.
func rounded(sum int64, scale int64) string {
	cents := (sum + scale/200) / (scale / 100)
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}
