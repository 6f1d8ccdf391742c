package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
	"github.com/pleach-go/pleach/lab/bench/ulfm"
	"github.com/pleach-go/pleach/lab/figures"
)

// viewsBesideULFM compares a view after a kill with the recovery of survivors by ULFM. Open MPI with
// ULFM is in PATH, or in the directory that make ulfmroot made and ULFM_ROOT names.
func viewsBesideULFM(l *lab) []figures.Table {
	root := ""
	if dir := os.Getenv("ULFM_ROOT"); dir != "" {
		root = " --ulfm-root " + dir
	}
	t := figures.Table{Name: "shrink", Columns: []string{
		"ranks", "complete", "first error", "last error", "revoke and shrink", "and agree", "Pleach: agreed view",
		"of shrink",
	}}
	for _, ranks := range []int{4, 8, 16} {
		var out struct {
			Results []stabilization.Result `json:"results"`
			ULFM    *ulfm.Result           `json:"ulfm"`
		}
		l.measure(&out, fmt.Sprintf(
			"go run ./lab/cmd/pleach-lab bench stabilization --members %d --kills 10 --compare ulfm --json%s", ranks, root))
		if l.err == nil && (out.ULFM == nil || len(out.Results) == 0) {
			l.err = errors.New("no Open MPI with ULFM: make ulfmroot DIR=…, and name it by ULFM_ROOT")
		}
		if l.err != nil {
			return nil
		}
		u := out.ULFM
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(ranks), fmt.Sprintf("%d of %d", u.Complete, u.Kills), millis(u.FirstErrorP50), millis(u.LastErrorP50),
			millis(u.ShrinkP50), millis(u.AgreeP50), millis(out.Results[0].P50), ratio(u.Ratio, 1),
		})
	}
	return []figures.Table{t}
}
