package tpch

import (
	"fmt"
	"time"
)

// Values that a column draws from a list are indices of it. The lists are in the order of
// the specification's distributions.

// Date is a day, counted from 1970-01-01.
type Date int32

// DateOf returns the day of a date.
func DateOf(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

// String returns the date as 1995-03-15.
func (d Date) String() string {
	return time.Unix(int64(d)*secondsPerDay, 0).UTC().Format(time.DateOnly)
}

const secondsPerDay = 24 * 60 * 60

// Segment is a market segment of customers.
type Segment uint8

// The market segments.
const (
	Automobile Segment = iota
	Building
	Furniture
	Machinery
	Household
)

var segments = [...]string{"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"}

func (s Segment) String() string { return segments[s] }

// Priority is the priority of an order.
type Priority uint8

// The priorities of orders.
const (
	Urgent Priority = iota
	High
	Medium
	NotSpecified
	Low
)

var priorities = [...]string{"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"}

func (p Priority) String() string { return priorities[p] }

// ShipMode is the way in which a line is shipped.
type ShipMode uint8

// The ship modes.
const (
	RegAir ShipMode = iota
	Air
	Rail
	Truck
	Mail
	FOB
	Ship
)

var shipModes = [...]string{"REG AIR", "AIR", "RAIL", "TRUCK", "MAIL", "FOB", "SHIP"}

func (m ShipMode) String() string { return shipModes[m] }

// Instruction says how a line is delivered.
type Instruction uint8

var instructions = [...]string{"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"}

func (i Instruction) String() string { return instructions[i] }

// PartType is the type of a part, three words.
type PartType uint8

var (
	typeSizes     = [...]string{"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"}
	typeFinishes  = [...]string{"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"}
	typeMaterials = [...]string{"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"}
)

const partTypes = len(typeSizes) * len(typeFinishes) * len(typeMaterials)

// String returns the words, as in PROMO BURNISHED COPPER.
func (t PartType) String() string {
	const materials, finishes = len(typeMaterials), len(typeFinishes)
	i := int(t)
	return typeSizes[i/materials/finishes] + " " + typeFinishes[i/materials%finishes] + " " + typeMaterials[i%materials]
}

// Promo reports whether the first word is PROMO.
func (t PartType) Promo() bool { return int(t) >= partTypes/len(typeSizes)*(len(typeSizes)-1) }

// CustomerName returns the name of a customer, which follows from the key.
func CustomerName(key int32) string { return fmt.Sprintf("Customer#%09d", key) }

// SupplierName returns the name of a supplier, which follows from the key.
func SupplierName(key int32) string { return fmt.Sprintf("Supplier#%09d", key) }

// Regions returns the names of region. A key is an index.
func Regions() [5]string { return [5]string{"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"} }

// Nation is a row of nation. Its key is its index in [Nations].
type Nation struct {
	Name   string
	Region string
}

// Nations returns the table nation, with the names of region.
func Nations() [25]Nation { return nations }

var nations = [...]Nation{
	{"ALGERIA", "AFRICA"},
	{"ARGENTINA", "AMERICA"},
	{"BRAZIL", "AMERICA"},
	{"CANADA", "AMERICA"},
	{"EGYPT", "MIDDLE EAST"},
	{"ETHIOPIA", "AFRICA"},
	{"FRANCE", "EUROPE"},
	{"GERMANY", "EUROPE"},
	{"INDIA", "ASIA"},
	{"INDONESIA", "ASIA"},
	{"IRAN", "MIDDLE EAST"},
	{"IRAQ", "MIDDLE EAST"},
	{"JAPAN", "ASIA"},
	{"JORDAN", "MIDDLE EAST"},
	{"KENYA", "AFRICA"},
	{"MOROCCO", "AFRICA"},
	{"MOZAMBIQUE", "AFRICA"},
	{"PERU", "AMERICA"},
	{"CHINA", "ASIA"},
	{"ROMANIA", "EUROPE"},
	{"SAUDI ARABIA", "MIDDLE EAST"},
	{"VIETNAM", "ASIA"},
	{"RUSSIA", "EUROPE"},
	{"UNITED KINGDOM", "EUROPE"},
	{"UNITED STATES", "AMERICA"},
}
