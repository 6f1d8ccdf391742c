// Package scale measures what a member costs as its group grows: memory, goroutines,
// connections and idle processor time, a broadcast compared with one without correction,
// a view change after deaths, and joins.
//
// All members are in this process, over TCP on the loopback interface or over memory,
// so that hundreds to thousands fit one machine. They share its processors, so a time
// grows with the number of members. What a member spends is the measure: it should
// stay the same.
//
// [Run] measures one size after the other. Every step has a bounded time and reports
// what it has by then.
package scale
