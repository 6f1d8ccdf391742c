package sql_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/transport/mem"
)

// A query that reads a file itself is refused, and one that only computes is not.
func TestUnpartitionedInputIsRefused(t *testing.T) {
	d, _ := newData(t)
	file := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(file, []byte("a\n1\n2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for query, refused := range map[string]bool{
		"SELECT sum(a) AS s FROM read_csv('" + file + "')":                                       true,
		"SELECT sum(a) AS s FROM '" + file + "'":                                                 true,
		"SELECT count(*) AS s FROM orders JOIN (SELECT * FROM read_csv('" + file + "')) ON true": true,
		"WITH x AS (SELECT a FROM '" + file + "') SELECT sum(a) AS s FROM x":                     true,
		"SELECT count(*) AS s FROM orders, range(2)":                                             false,
	} {
		plan, err := sql.ParsePlan("phase one\n" + query +
			"\n=> all_s to all\n\nphase two\nSELECT sum(s) AS s FROM all_s\n=> result")
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open()
		if err != nil {
			t.Fatal(err)
		}
		w, err := pleach.NewWorld(t.Context(), pleach.Config{
			Addresses: []string{"127.0.0.1:1"},
			Network:   pleach.Network{Transport: mem.NewNetwork(1, mem.Config{}).Member(protocol.Rank(0))},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Run(t.Context(), w, sql.Job{Plan: plan, Source: d})
		var u *sql.UnpartitionedError
		if errors.As(err, &u) != refused || !refused && err != nil {
			t.Errorf("%s: %v", query, err)
		}
		if err := errors.Join(w.Abort(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}
