package tpchdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/lab/tpch"
)

// The tables have the specification's names and types. SELECT * gives them to Arrow columns:
// money in cents and percentages become decimals.

// selectAll returns the query that gives columns of hundredths the type DECIMAL(15,2).
func selectAll(from string, hundredths ...string) string {
	if len(hundredths) == 0 {
		return "FROM " + from
	}
	var replaced []string
	for _, c := range hundredths {
		replaced = append(replaced, fmt.Sprintf("(%s::DECIMAL(15,0) * 0.01::DECIMAL(3,2))::DECIMAL(15,2) AS %s", c, c))
	}
	return fmt.Sprintf("SELECT * REPLACE (%s) FROM %s", strings.Join(replaced, ", "), from)
}

// Numbers of different words in columns.
const (
	segments     = 5
	priorities   = 5
	shipModes    = 7
	instructions = 4
	partTypes    = 150
	brands       = 56 // the largest number of one, and one
	containers   = 40
)

// share is a part of all tables.
type share struct {
	generator     tpch.Generator
	number, parts int
}

// rows returns the rows of a table of which there are so many.
func (s *share) rows(all int) (first, end int) { return tpch.Share(all, s.number, s.parts) }

// makers make the tables: Arrow columns, and the query that gives them their types. Lines are
// made with their orders.
var makers = map[string]func(*share) (table, string){
	"region":   regionTable,
	"nation":   nationTable,
	"supplier": supplierTable,
	"part":     partTable,
	"partsupp": partsuppTable,
	"customer": customerTable,
}

func regionTable(s *share) (t table, query string) {
	names := tpch.Regions()
	first, end := s.rows(len(names))
	t.add("r_regionkey", int32s(numbered(first, end)))
	t.add("r_name", textColumn(names[first:end]))
	return t, selectAll(view)
}

func nationTable(s *share) (t table, query string) {
	all, nations := tpch.Regions(), tpch.Nations()
	first, end := s.rows(len(nations))
	var names []string
	var regions []int32
	for _, n := range nations[first:end] {
		names = append(names, n.Name)
		regions = append(regions, int32(slices.Index(all[:], n.Region)))
	}
	t.add("n_nationkey", int32s(numbered(first, end)))
	t.add("n_name", textColumn(names))
	t.add("n_regionkey", int32s(regions))
	return t, selectAll(view)
}

func numbered(first, end int) (all []int32) {
	for i := first; i < end; i++ {
		all = append(all, int32(i))
	}
	return all
}

func (t *table) addContacts(prefix string, c tpch.Contacts) {
	t.add(prefix+"_address", textColumn(c.Address))
	t.add(prefix+"_phone", textColumn(c.Phone))
	t.add(prefix+"_acctbal", int64s(c.Balance))
}

func mapped[T any](values []T, f func(T) string) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = f(v)
	}
	return all
}

func supplierTable(s *share) (t table, query string) {
	first, end := s.rows(s.generator.NumSuppliers())
	c := s.generator.Suppliers(first, end)
	t.add("s_suppkey", int32s(c.SuppKey))
	t.add("s_name", textColumn(mapped(c.SuppKey, tpch.SupplierName)))
	t.add("s_nationkey", int32s(c.NationKey))
	t.addContacts("s", s.generator.SupplierContacts(first, end))
	return t, selectAll(view, "s_acctbal")
}

func partTable(s *share) (t table, query string) {
	p := s.generator.Parts(s.rows(s.generator.NumParts()))
	t.add("p_partkey", int32s(p.PartKey))
	t.add("p_name", textColumn(p.Name))
	t.add("p_mfgr", textColumn(mapped(p.Brand, tpch.Brand.Manufacturer)))
	t.add("p_brand", words(p.Brand, brands))
	t.add("p_type", words(p.Type, partTypes))
	t.add("p_size", int32s(p.Size))
	t.add("p_container", words(p.Container, containers))
	t.add("p_retailprice", int64s(p.RetailPrice))
	return t, selectAll(view, "p_retailprice")
}

func partsuppTable(s *share) (t table, query string) {
	p := s.generator.PartSupps(s.rows(s.generator.NumParts()))
	t.add("ps_partkey", int32s(p.PartKey))
	t.add("ps_suppkey", int32s(p.SuppKey))
	t.add("ps_availqty", int32s(p.AvailQty))
	t.add("ps_supplycost", int64s(p.SupplyCost))
	return t, selectAll(view, "ps_supplycost")
}

func customerTable(s *share) (t table, query string) {
	first, end := s.rows(s.generator.NumCustomers())
	c := s.generator.Customers(first, end)
	t.add("c_custkey", int32s(c.CustKey))
	t.add("c_name", textColumn(mapped(c.CustKey, tpch.CustomerName)))
	t.add("c_nationkey", int32s(c.NationKey))
	t.add("c_mktsegment", words(c.Segment, segments))
	t.addContacts("c", s.generator.CustomerContacts(first, end))
	return t, selectAll(view, "c_acctbal")
}

func ordersTable(o *tpch.Orders) (t table, query string) {
	t.add("o_orderkey", int64s(o.OrderKey))
	t.add("o_custkey", int32s(o.CustKey))
	t.add("o_orderstatus", characters(o.Status))
	t.add("o_totalprice", int64s(o.TotalPrice))
	t.add("o_orderdate", dates(o.OrderDate))
	t.add("o_orderpriority", words(o.Priority, priorities))
	t.add("o_shippriority", int32s(o.ShipPriority))
	return t, selectAll(view, "o_totalprice")
}

func lineitemTable(l *tpch.Lineitems) (t table, query string) {
	t.add("l_orderkey", int64s(l.OrderKey))
	t.add("l_partkey", int32s(l.PartKey))
	t.add("l_suppkey", int32s(l.SuppKey))
	t.add("l_linenumber", int32s(l.LineNumber))
	t.add("l_quantity", int32s(l.Quantity))
	t.add("l_extendedprice", int64s(l.ExtendedPrice))
	t.add("l_discount", int32s(l.Discount))
	t.add("l_tax", int32s(l.Tax))
	t.add("l_returnflag", characters(l.ReturnFlag))
	t.add("l_linestatus", characters(l.LineStatus))
	t.add("l_shipdate", dates(l.ShipDate))
	t.add("l_commitdate", dates(l.CommitDate))
	t.add("l_receiptdate", dates(l.ReceiptDate))
	t.add("l_shipmode", words(l.ShipMode, shipModes))
	t.add("l_shipinstruct", words(l.Instruction, instructions))
	return t, selectAll(view, "l_extendedprice", "l_discount", "l_tax")
}
