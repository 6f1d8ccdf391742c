package experiments

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pleach-go/pleach/lab/tpch"
)

// The data of Query 3: each table in as many partitions as there are tasks, orders and
// their lineitems in the same one. So orders and lineitems are joined without a message,
// customers and orders are not.

// dataset is where partitions come from.
type dataset struct {
	Scale   float64 // the scale factor of all partitions together
	Members int
	// Directory has the partitions as files. If empty, they are generated.
	Directory string
}

// partition is a task's share of the tables, with the columns that the query reads.
type partition struct {
	customers tpch.Customers
	orders    tpch.Orders
	lines     tpch.Lineitems
}

// load generates or reads a task's partition.
func (d *dataset) load(task int) (*partition, error) {
	if d.Directory == "" {
		return d.generate(task)
	}
	b, err := os.ReadFile(d.file(task))
	if err != nil {
		return nil, err
	}
	var p partition
	for _, c := range p.columns() {
		b, err = c.cut(b)
		if err != nil {
			return nil, fmt.Errorf("experiments: %s: %w", d.file(task), err)
		}
	}
	return &p, nil
}

func (d *dataset) generate(task int) (*partition, error) {
	g, err := tpch.New(d.Scale)
	if err != nil {
		return nil, err
	}
	var p partition
	p.customers = g.Customers(tpch.Share(g.NumCustomers(), task, d.Members))
	p.orders, p.lines = g.Orders(tpch.Share(g.NumOrders(), task, d.Members))
	return &p, nil
}

func (d *dataset) file(task int) string {
	return filepath.Join(d.Directory, fmt.Sprintf("partition-%05d", task))
}

// write makes the files of all partitions.
func (d *dataset) write() error {
	for task := range d.Members {
		p, err := d.generate(task)
		if err != nil {
			return err
		}
		var b []byte
		for _, c := range p.columns() {
			b = c.append(b)
		}
		if err := os.WriteFile(d.file(task), b, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// answer is the result of the query, by the reference implementation.
func (d *dataset) answer() ([]tpch.Q3Row, error) {
	g, err := tpch.New(d.Scale)
	if err != nil {
		return nil, err
	}
	customers := g.Customers(0, g.NumCustomers())
	q := tpch.NewQ3(&customers)
	for task := range d.Members {
		o, l := g.Orders(tpch.Share(g.NumOrders(), task, d.Members))
		q.Add(&o, &l)
	}
	return q.Rows(), nil
}

// filter returns the keys of the customers of the segment.
func (p *partition) filter() (keys []int32) {
	for i, s := range p.customers.Segment {
		if s == tpch.Building {
			keys = append(keys, p.customers.CustKey[i])
		}
	}
	return keys
}

// join returns the ten orders with the highest revenue of the partition, which are of
// the customers with these keys.
func (p *partition) join(keys []int32) topTen {
	q := tpch.NewQ3(&tpch.Customers{CustKey: keys, Segment: slices.Repeat([]tpch.Segment{tpch.Building}, len(keys))})
	q.Add(&p.orders, &p.lines)
	var top topTen
	copy(top[:], q.Rows())
	return top
}

// topTen are rows of the answer. Rows without a revenue are missing ones, at the end.
type topTen [10]tpch.Q3Row

func (t *topTen) rows() []tpch.Q3Row {
	n := slices.IndexFunc(t[:], func(r tpch.Q3Row) bool { return r.Revenue == 0 })
	if n < 0 {
		n = len(t)
	}
	return t[:n]
}

// mergeTopTen is the operator of the thesis's "customized reduce communication".
func mergeTopTen(left, right topTen) topTen {
	return topTen(tpch.TopQ3(slices.Concat(left[:], right[:])))
}

// column is a column of a table in a file: its length, then its values.
type column interface {
	append(b []byte) []byte
	cut(b []byte) (rest []byte, err error)
}

func (p *partition) columns() []column {
	return []column{
		values(&p.customers.CustKey), values(&p.customers.Segment),
		values(&p.orders.OrderKey), values(&p.orders.CustKey), values(&p.orders.OrderDate), values(&p.orders.ShipPriority),
		values(&p.lines.OrderKey), values(&p.lines.ExtendedPrice), values(&p.lines.Discount), values(&p.lines.ShipDate),
	}
}

// fixed is a column of values of one size.
type fixed[T ~uint8 | ~int32 | ~int64] struct {
	values *[]T
	size   int // of a value, in bytes
}

func values[T ~uint8 | ~int32 | ~int64](v *[]T) fixed[T] { return fixed[T]{v, binary.Size(T(0))} }

func (c fixed[T]) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(*c.values)))
	for _, v := range *c.values {
		switch c.size {
		case 1:
			b = append(b, byte(v))
		case 4:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		default:
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
	}
	return b
}

func (c fixed[T]) cut(b []byte) (rest []byte, err error) {
	if len(b) < 8 {
		return nil, io.ErrUnexpectedEOF
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > uint64(len(b)/c.size) {
		return nil, io.ErrUnexpectedEOF
	}
	*c.values = make([]T, n)
	for i := range *c.values {
		switch c.size {
		case 1:
			(*c.values)[i] = T(b[i])
		case 4:
			(*c.values)[i] = T(binary.LittleEndian.Uint32(b[4*i:]))
		default:
			(*c.values)[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return b[int(n)*c.size:], nil
}
