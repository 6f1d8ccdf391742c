package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestExpandNodes(t *testing.T) {
	for list, want := range map[string]string{
		"host":                         "host",
		"node[001,007-009],host2":      "node001 node007 node008 node009 host2",
		"n[8-11]":                      "n8 n9 n10 n11",
		"r[1-2]n[01-02].cluster":       "r1n01.cluster r1n02.cluster r2n01.cluster r2n02.cluster",
		"[1-2]":                        "1 2",
		"a-b_c.d":                      "a-b_c.d",
		"n[999999999999999999]":        "n999999999999999999",
		"b,a,n[2,1]":                   "b a n2 n1",
		"n[0-0],n[00]":                 "n0 n00",
		"x[1-2][3-4]":                  "x13 x14 x23 x24",
		"lång":                         "! not part of a host's name",
		"":                             "! missing",
		"a,":                           "! missing",
		",a":                           "! 1 to 253",
		"a,,b":                         "! 1 to 253",
		"a[":                           "! not closed",
		"a]":                           "! not part",
		"a[]":                          "! not a range",
		"a[2-1]":                       "! not a range",
		"a[-1]":                        "! not a range",
		"a[+1]":                        "! not a range",
		"a[1-2-3]":                     "! not a range",
		"a[[1]]":                       "! not a range",
		"a[1-65537]":                   "! more than 65536",
		"a[1-65536],b":                 "! more than 65536",
		"a[1-999][1-999]":              "! more than 65536",
		"a[0-999999999999999999]":      "! more than 65536",
		"a[1][1][1][1][1][1][1][1][1]": "! brackets",
	} {
		got, err := expandNodes(list)
		if problem, bad := strings.CutPrefix(want, "! "); bad {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%q: got %.100q, %v, want %s", list, got, err, problem)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, %v, want %s", list, got, err, want)
		}
	}
	if got, err := expandNodes("a[1-65536]"); err != nil || len(got) != 65536 {
		t.Errorf("got %d names, %v", len(got), err)
	}
}

// Whatever the text: no more names than allowed, all of them names, and a list
// of the names themselves expands to the same.
func FuzzExpandNodes(f *testing.F) {
	for _, list := range []string{"node[001,007-015],host2", "a[1-2]b[3-4]", "a[", "[0-9]", ",", "n[1-70000]"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := expandNodes(list)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > maxNodes {
			t.Fatalf("%d names", len(names))
		}
		again, err := expandNodes(strings.Join(names, ","))
		if err != nil || !slices.Equal(again, names) {
			t.Fatalf("%q: again %v, %v", list, fmt.Sprintf("%.200q", again), err)
		}
	})
}
