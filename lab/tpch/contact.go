package tpch

import "fmt"

// Contacts are columns that customer and supplier have both. All have the same length.
type Contacts struct {
	Address []string
	Phone   []string // The first two digits are those of the nation.
	Balance []int64  // in cents
}

// CustomerContacts returns the contacts of customers from row first to before row end, counted
// from 0. It panics if there are no such rows.
func (g Generator) CustomerContacts(first, end int) Contacts {
	checkRange("customer", first, end, g.customers)
	return contacts(nationKeys(1489529863, first, end), first, 881155353, 1521138112, 298370230)
}

// SupplierContacts returns the contacts of suppliers from row first to before row end, counted
// from 0. It panics if there are no such rows.
func (g Generator) SupplierContacts(first, end int) Contacts {
	checkRange("supplier", first, end, g.suppliers)
	return contacts(nationKeys(110356601, first, end), first, 706178559, 884434366, 962338209)
}

// Draws of a row: an address has a length and at most 40 characters, five for each draw.
const (
	addressDraws = 9
	phoneDraws   = 3
)

func contacts(nations []int32, first int, addressSeed, phoneSeed, balanceSeed lehmer) Contacts {
	n := len(nations)
	c := Contacts{Address: make([]string, n), Phone: make([]string, n), Balance: make([]int64, n)}
	address, phone, balance := newColumn(addressSeed, 0), newColumn(phoneSeed, first*phoneDraws),
		newColumn(balanceSeed, first)
	address.skip(first * addressDraws)
	for i, nation := range nations {
		row := address
		c.Address[i] = addressText(&row)
		address.skip(addressDraws)
		c.Phone[i] = fmt.Sprintf("%d-%03d-%03d-%04d", 10+nation, phone.draw(100, 999), phone.draw(100, 999),
			phone.draw(1000, 9999))
		c.Balance[i] = int64(balance.draw(-99_999, 999_999))
	}
	return c
}

// characters are those of an address.
const characters = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,"

func addressText(stream *lehmer) string {
	text := make([]byte, stream.draw(10, 40))
	bits := 0
	for i := range text {
		if i%5 == 0 {
			bits = stream.draw(0, 1<<31-1)
		}
		text[i] = characters[bits&63]
		bits >>= 6
	}
	return string(text)
}
