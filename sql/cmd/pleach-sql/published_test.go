//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/pleach-go/pleach/sql/dataset"
)

// published are the beginnings of first rows that the TPC publishes for scale factor 1. Together
// they depend on almost all columns, so equal answers mean equal data. Package tpch compares
// those of queries 1, 3, 5, 6, 12, 14 and 18.
var published = map[string]string{
	"q2":  "9938.53|Supplier#000005359|UNITED KINGDOM|185358|Manufacturer#4|",
	"q4":  "1-URGENT|10594",
	"q7":  "FRANCE|GERMANY|1995|54639732.7336",
	"q8":  "1995|0.0344",
	"q9":  "ALGERIA|1998|27136900.1803",
	"q10": "57040|Customer#000057040|734235.2455|632.87|JAPAN|",
	"q11": "129760|17538456.86",
	"q15": "8449|Supplier#000008449|",
	"q17": "348406.05",
	"q19": "3083843.0578",
	"q20": "Supplier#000000020|",
	"q21": "Supplier#000002829|20",
	"q22": "13|888|6737713.99",
}

func checkPublished(t *testing.T, data *dataset.Dataset) {
	t.Helper()
	for query, want := range published {
		if got := strings.Join(data.Answers[query][0], "|"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: the first row is %s, published is %s", query, got, want)
		}
	}
}
