// Package tpch generates TPC-H data and answers some of its queries: a large join and
// aggregation whose right result is published.
//
// A [Generator] makes any range of rows alone, so each task of a job generates its share
// of the tables, and the new owner of a task generates it again:
//
//	g, err := tpch.New(1) // scale factor 1: 1.5 million orders, 6,001,215 lineitems
//	orders, lines := g.Orders(tpch.Share(g.NumOrders(), task, tasks))
//
// The rows are those of dbgen, the generator of the TPC-H specification: it draws each
// column from a Lehmer generator of its own (Park & Miller 1988), and a generator can skip
// ahead by modular powers. There are all columns but those
// of free text, the comments, and the clerks of orders.
//
// Tables are columns (structures of arrays). Money is in cents, discount and tax in
// percent, dates are days.
//
// [Q1], [Q3] and [Q6] are reference implementations. They add up one part of the tables
// after the other, with integers, so the result does not depend on the parts.
//
// What a program measures with this package is no TPC-H result: those are published by
// the TPC only.
package tpch
