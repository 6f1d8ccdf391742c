package samplesort

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"
)

// Case 102: lines are sorted by keys as GNU sort does it (sort -s, LC_ALL=C).
func TestKeysAsGNUSort(t *testing.T) {
	gnu, err := exec.LookPath("sort")
	if err != nil {
		t.Skip("there is no sort(1)")
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		var input []byte
		for range 100 + random.IntN(2000) {
			for range random.IntN(12) {
				input = append(input, "ab,, \t\x00\xffz--..0001239"[random.IntN(20)])
			}
			input = append(input, '\n')
		}
		o := Order{Reverse: random.IntN(2) == 0, Numeric: random.IntN(3) == 0, Unique: random.IntN(4) == 0}
		args := []string{"-s"}
		if random.IntN(2) == 0 {
			o.Separator = ','
			args = append(args, "-t,")
		} else {
			args = append(args, "-b") // Blanks before a field are skipped.
		}
		for option, set := range map[string]bool{"-r": o.Reverse, "-n": o.Numeric, "-u": o.Unique} {
			if set {
				args = append(args, option)
			}
		}
		for range 1 + random.IntN(3) {
			k, arg := randomKey(random, o.Separator == 0)
			o.Keys = append(o.Keys, k)
			args = append(args, "-k"+arg)
		}
		if random.IntN(5) == 0 { // whole lines
			o.Keys, o.Separator, args = nil, 0, args[:1]
			o.Reverse = false
			if o.Numeric {
				args = append(args, "-n")
			}
			if o.Unique {
				args = append(args, "-u")
			}
		}
		cmd := exec.Command(gnu, args...)
		cmd.Env, cmd.Stdin = []string{"LC_ALL=C"}, bytes.NewReader(input)
		want, err := cmd.Output()
		if err != nil {
			t.Skip(err) // of another kind
		}
		half := bytes.IndexByte(input[len(input)/2:], '\n') + 1 + len(input)/2
		table, err := newTable(rules{Lines, o}, input[:half], input[half:])
		if err != nil {
			t.Fatal(err)
		}
		table.sort()
		if o.Unique {
			table.dropDuplicates()
		}
		var got []byte
		for _, e := range table.entries {
			got = append(got, table.record(e)...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("seed %d: not as sort %v", seed, args)
		}
	}
}

// randomKey returns a key, and what it is for sort(1). An option of a key takes the place of all
// others, -b among them.
func randomKey(random *rand.Rand, blanks bool) (k Key, arg string) {
	k = Key{Field: 1 + random.IntN(3), Numeric: random.IntN(3) == 0, Reverse: random.IntN(3) == 0}
	arg = fmt.Sprint(k.Field)
	if blanks && (k.Numeric || k.Reverse) {
		arg += "b"
	}
	if random.IntN(2) == 0 {
		k.Last = k.Field + random.IntN(2)
		arg += fmt.Sprintf(",%d", k.Last)
	}
	if k.Numeric {
		arg += "n"
	}
	if k.Reverse {
		arg += "r"
	}
	return k, arg
}
