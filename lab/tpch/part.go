package tpch

import (
	"fmt"
	"strings"
)

// Parts are rows of part. All columns have the same length.
type Parts struct {
	PartKey     []int32
	Name        []string
	Brand       []Brand
	Type        []PartType
	Size        []int32
	Container   []Container
	RetailPrice []int64 // in cents
}

// PartSupps are rows of partsupp, four for each part. All columns have the same length.
type PartSupps struct {
	PartKey    []int32
	SuppKey    []int32
	AvailQty   []int32
	SupplyCost []int64 // in cents
}

// suppliersPerPart is how many suppliers have a part.
const suppliersPerPart = 4

// Parts returns the parts from row first to before row end, counted from 0. It panics if
// there are no such rows.
func (g Generator) Parts(first, end int) Parts {
	checkRange("part", first, end, g.parts)
	n := end - first
	p := Parts{
		PartKey: keys(first, end), Name: make([]string, n), Brand: make([]Brand, n), Type: make([]PartType, n),
		Size: make([]int32, n), Container: make([]Container, n), RetailPrice: make([]int64, n),
	}
	var (
		name         = newColumn(709314158, first*len(colors))
		manufacturer = newColumn(1, first)
		brand        = newColumn(46831694, first)
		kind         = newColumn(1841581359, first)
		size         = newColumn(1193163244, first)
		container    = newColumn(727633698, first)
	)
	for i, key := range p.PartKey {
		p.Name[i] = partName(&name)
		p.Brand[i] = Brand(10*manufacturer.draw(1, 5) + brand.draw(1, 5))
		p.Type[i] = PartType(kind.draw(0, partTypes-1))
		p.Size[i] = int32(size.draw(1, 50))
		p.Container[i] = Container(container.draw(0, containers-1))
		p.RetailPrice[i] = retailPrice(int(key))
	}
	return p
}

// partName returns five colors, the first ones of a permutation of all.
func partName(stream *lehmer) string {
	permuted := colors
	for i := range permuted {
		j := stream.draw(i, len(permuted)-1)
		permuted[i], permuted[j] = permuted[j], permuted[i]
	}
	return strings.Join(permuted[:5], " ")
}

// PartSupps returns the rows of partsupp of the parts from row first to before row end, counted
// from 0. It panics if there are no such parts.
func (g Generator) PartSupps(first, end int) PartSupps {
	checkRange("part", first, end, g.parts)
	n := (end - first) * suppliersPerPart
	s := PartSupps{
		PartKey: make([]int32, n), SuppKey: make([]int32, n), AvailQty: make([]int32, n),
		SupplyCost: make([]int64, n),
	}
	quantity, cost := newColumn(1671059989, first*suppliersPerPart), newColumn(1051288424, first*suppliersPerPart)
	for i := range s.PartKey {
		part := first + i/suppliersPerPart + 1
		s.PartKey[i], s.SuppKey[i] = int32(part), int32(g.supplierOf(part, i%suppliersPerPart))
		s.AvailQty[i] = int32(quantity.draw(1, 9999))
		s.SupplyCost[i] = int64(cost.draw(100, 100_000))
	}
	return s
}

// Brand is a brand of parts: the digits of its manufacturer, and of the brand among those.
type Brand uint8

func (b Brand) String() string { return fmt.Sprintf("Brand#%d", uint8(b)) }

// Manufacturer returns the name of the brand's manufacturer.
func (b Brand) Manufacturer() string { return fmt.Sprintf("Manufacturer#%d", b/10) }

// Container is what a part is packed in: a size and a kind.
type Container uint8

var (
	containerSizes = [...]string{"SM", "LG", "MED", "JUMBO", "WRAP"}
	containerKinds = [...]string{"CASE", "BOX", "BAG", "JAR", "PACK", "PKG", "CAN", "DRUM"}
)

const containers = len(containerSizes) * len(containerKinds)

func (c Container) String() string {
	return containerSizes[int(c)/len(containerKinds)] + " " + containerKinds[int(c)%len(containerKinds)]
}

var colors = [...]string{
	"almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue", "blush", "brown",
	"burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral", "cornflower", "cornsilk", "cream", "cyan",
	"dark", "deep", "dim", "dodger", "drab", "firebrick", "floral", "forest", "frosted", "gainsboro", "ghost",
	"goldenrod", "green", "grey", "honeydew", "hot", "indian", "ivory", "khaki", "lace", "lavender", "lawn", "lemon",
	"light", "lime", "linen", "magenta", "maroon", "medium", "metallic", "midnight", "mint", "misty", "moccasin",
	"navajo", "navy", "olive", "orange", "orchid", "pale", "papaya", "peach", "peru", "pink", "plum", "powder", "puff",
	"purple", "red", "rose", "rosy", "royal", "saddle", "salmon", "sandy", "seashell", "sienna", "sky", "slate",
	"smoke", "snow", "spring", "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white", "yellow",
}
