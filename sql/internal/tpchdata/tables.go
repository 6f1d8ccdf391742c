package tpchdata

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/internal/tpch"
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

const (
	segments   = 5
	priorities = 5
	shipModes  = 7
)

func customerTable(c *tpch.Customers) (t table, query string) {
	t.add("c_custkey", int32s(c.CustKey))
	t.add("c_nationkey", int32s(c.NationKey))
	t.add("c_mktsegment", words(c.Segment, segments))
	return t, selectAll(view)
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
	return t, selectAll(view, "l_extendedprice", "l_discount", "l_tax")
}
