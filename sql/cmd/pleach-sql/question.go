package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/sql"
	"github.com/pleach-go/pleach/sql/dataset"
	"github.com/pleach-go/pleach/sql/internal/queries"
	"github.com/pleach-go/pleach/sql/internal/tpchdata"
)

// question is what run and explain are asked: a query and its tables.
type question struct {
	data, known, file string
	scale             float64
	text              string
}

func (q *question) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.data, "data", "", "`directory` that import or generate has written")
	f.Float64Var(&q.scale, "sf", 0, "generate TPC-H data at this scale `factor` instead of reading it")
	f.StringVar(&q.known, "query", "", "`name` of a known query: "+strings.Join(queries.Names(), ", "))
	f.StringVar(&q.file, "file", "", "`file` with a query, or with a plan if it ends with .plan")
}

func (q *question) validate(args []string) error {
	given := 0
	for _, text := range []string{strings.Join(args, " "), q.known, q.file} {
		if text != "" {
			given++
		}
	}
	switch {
	case (q.data == "") == (q.scale == 0):
		return errors.New("choose either --data and a directory, or --sf and a scale factor")
	case given == 0:
		return errors.New("no query: write a SELECT, --query and a name, or --file and a file")
	case given > 1 || len(args) > 1:
		return errors.New("more than one query: write one SELECT between quotation marks, --query or --file")
	}
	if len(args) == 1 {
		q.text = args[0]
	}
	if words := strings.Fields(q.text); len(words) > 0 && strings.EqualFold(words[0], "EXPLAIN") {
		return errors.New("EXPLAIN is a command: write pleach-sql explain and the SELECT")
	}
	return nil
}

// job returns the query or plan and its tables, and a description of those for their answers.
func (q *question) job(scratch string) (j sql.Job, data *dataset.Dataset, err error) {
	j.Query = q.text
	if q.known != "" {
		j.Query, err = queries.SQL(q.known)
		if err != nil {
			return j, nil, err
		}
	}
	if q.file != "" {
		text, err := os.ReadFile(q.file)
		if err != nil {
			return j, nil, err
		}
		j.Query = string(text)
		if strings.HasSuffix(q.file, ".plan") {
			j.Plan, err = sql.ParsePlan(j.Query)
			if err != nil {
				return j, nil, err
			}
		}
	}
	if q.data != "" {
		data, err = dataset.Open(q.data)
		j.Source = data
		return j, data, err
	}
	j.Source, err = tpchdata.NewSource(q.scale, scratch)
	return j, &dataset.Dataset{Scale: q.scale}, err
}
