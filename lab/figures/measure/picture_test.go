package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lab/bench/scale"
	"github.com/pleach-go/pleach/lab/figures"
)

// The picture of docs/measure/scale.md is drawn from the record of its table: from the rows
// in memory.
func TestScalePictureIsDrawnFromItsRecord(t *testing.T) {
	const file = "../../../docs/pictures/scale.svg"
	record, err := figures.Read(os.DirFS("../../.."), "scale")
	if err != nil {
		t.Fatal(err)
	}
	var results []scale.Result
	for _, table := range record.Tables {
		if table.Name != "members" {
			continue
		}
		for _, row := range table.Rows {
			members, inMemory := strings.CutSuffix(row[0], ", mem")
			if !inMemory || row[1] == "" {
				continue
			}
			results = append(results, scaleResult(t, members, row))
		}
	}
	if len(results) < 3 {
		t.Fatalf("the record has %d sizes", len(results))
	}
	var svg bytes.Buffer
	if err := scale.Chart(results).SVG(&svg); err != nil {
		t.Fatal(err)
	}
	if testutil.UpdateGolden.On() {
		if err := os.WriteFile(file, svg.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(file); err != nil || !bytes.Equal(drawn, svg.Bytes()) {
		t.Errorf("%s is not drawn from its record: PLEACH_UPDATE_GOLDEN=1 go test -run ScalePicture ./lab/figures/measure (%v)", file, err)
	}
}

// scaleResult reads the cells that scaleMember and scaleView write.
func scaleResult(t *testing.T, members string, row []string) scale.Result {
	t.Helper()
	number := func(cell, unit string) float64 {
		value, found := strings.CutSuffix(cell, unit)
		n, err := strconv.ParseFloat(value, 64)
		if !found || err != nil {
			t.Fatalf("%q is no number of%s: %v", cell, unit, err)
		}
		return n
	}
	viewCPU, unit := row[13], " µs"
	factor := 1.0
	if strings.HasSuffix(viewCPU, " ms") {
		unit, factor = " ms", 1000
	}
	return scale.Result{
		Members: int(number(members, "")), HeapKB: number(row[1], " kB"), Connections: number(row[3], ""),
		Messages: number(row[7], ""), CPU: number(row[8], " µs"), BareCPU: number(row[9], " µs"),
		ViewFrames: number(row[12], ""), ViewCPU: factor * number(viewCPU, unit),
	}
}
