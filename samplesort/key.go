package samplesort

import (
	"encoding/binary"
	"slices"
)

// Several keys, numbers, and keys of different directions become one key: bytes that are ordered as
// the keys are. So samples, buckets, the sort and the check all compare bytes.

// encodes reports whether the key of a line is not a part of it.
func (r *rules) encodes() bool {
	switch len(r.Keys) {
	case 0:
		return r.Numeric
	case 1:
		numeric, reverse := r.options(0)
		return numeric || reverse != r.Reverse
	}
	return true
}

// options returns how one of the keys is compared.
func (r *rules) options(number int) (numeric, reverse bool) {
	if number < len(r.Keys) {
		if k := r.Keys[number]; k.Numeric || k.Reverse {
			return k.Numeric, k.Reverse
		}
	}
	return r.Numeric, r.Reverse
}

// appendKey appends the key of a line. No key begins with another one, so what follows does not matter
// unless they are equal.
func (r *rules) appendKey(b, record []byte) []byte {
	line := record[:len(record)-1]
	for i := range max(1, len(r.Keys)) {
		first, end := r.findKey(line, i)
		numeric, reverse := r.options(i)
		from := len(b)
		if numeric {
			b = appendNumber(b, line[first:end])
		} else {
			b = appendText(b, line[first:end])
		}
		if reverse != r.Reverse { // compareKeys reverses all of them.
			invert(b[from:])
		}
	}
	return b
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// appendText appends a text, with an end that is less than any byte of it.
func appendText(b, text []byte) []byte {
	for _, c := range text {
		b = append(b, c)
		if c == 0 {
			b = append(b, 0xff)
		}
	}
	return append(b, 0, 0)
}

// The signs of numbers.
const (
	negative = iota
	zero
	positive
)

// appendNumber appends the number at the beginning of a text: its sign, the number of digits before
// the point, and the digits without zeros at the ends, two in a byte. A negative number has the
// inverse of what its absolute value has.
func appendNumber(b, text []byte) []byte {
	at := 0
	for at < len(text) && isBlank(text[at]) {
		at++
	}
	minus := at < len(text) && text[at] == '-'
	if minus {
		at++
	}
	whole := digitsOf(text[at:])
	var fraction []byte
	if rest := text[at+len(whole):]; len(rest) > 0 && rest[0] == '.' {
		fraction = digitsOf(rest[1:])
	}
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	size := len(whole)
	fraction = withoutZeros(fraction)
	if len(fraction) == 0 {
		whole = withoutZeros(whole)
	}
	if len(whole)+len(fraction) == 0 {
		return append(b, zero)
	}
	if minus {
		b = append(b, negative)
	} else {
		b = append(b, positive)
	}
	from := len(b)
	if size < 0xff {
		b = append(b, byte(size))
	} else {
		b = binary.BigEndian.AppendUint64(append(b, 0xff), uint64(size))
	}
	b = appendDigits(b, whole, fraction)
	if minus {
		invert(b[from:])
	}
	return b
}

// digitsOf returns the digits at the beginning of a text.
func digitsOf(text []byte) []byte {
	if i := slices.IndexFunc(text, func(c byte) bool { return c < '0' || c > '9' }); i >= 0 {
		return text[:i]
	}
	return text
}

// withoutZeros returns digits without the zeros at their end.
func withoutZeros(digits []byte) []byte {
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits
}

// appendDigits appends digits, four bits each, with an end that is less than any digit.
func appendDigits(b, whole, fraction []byte) []byte {
	half := false
	add := func(nibble byte) {
		if half {
			b[len(b)-1] |= nibble
		} else {
			b = append(b, nibble<<4)
		}
		half = !half
	}
	for _, digits := range [...][]byte{whole, fraction} {
		for _, c := range digits {
			add(c - '0' + 1)
		}
	}
	add(0)
	return b
}
