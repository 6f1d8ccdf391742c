package partition

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Scatter reads all rows and returns them in parts, encoded. An empty part has the names
// and types of the columns, too.
func Scatter(rows array.RecordReader, parts int, route Router) ([][]byte, error) {
	s, err := newScatterer(rows.Schema(), parts)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		s.add(rows.RecordBatch(), route)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return s.encode()
}

// scatterer has the rows of each part so far, in columns.
type scatterer struct {
	schema  *arrow.Schema
	columns [][]column // by part
	lengths []int      // by part

	// What is needed for one batch, kept for the next.
	to     []int32 // by row: its part
	starts []int32 // by part: where its rows begin in order
	order  []int32 // rows by part
}

func newScatterer(schema *arrow.Schema, parts int) (*scatterer, error) {
	s := &scatterer{
		schema: schema, columns: make([][]column, parts), lengths: make([]int, parts),
		starts: make([]int32, parts+1),
	}
	for part := range s.columns {
		for _, f := range schema.Fields() {
			c, err := newColumn(f.Type)
			if err != nil {
				return nil, fmt.Errorf("partition: column %s: %w", f.Name, err)
			}
			s.columns[part] = append(s.columns[part], c)
		}
	}
	return s, nil
}

// add adds a batch. Each part gets its rows column by column.
func (s *scatterer) add(batch arrow.RecordBatch, route Router) {
	s.sort(batch, route)
	for part, columns := range s.columns {
		rows := s.order[s.starts[part]:s.starts[part+1]]
		if len(rows) == 0 {
			continue
		}
		for i, c := range columns {
			c.gather(batch.Column(i), rows)
		}
		s.lengths[part] += len(rows)
	}
}

// sort orders the rows of a batch by part: a counting sort, which is stable.
func (s *scatterer) sort(batch arrow.RecordBatch, route Router) {
	n := int(batch.NumRows())
	s.to, s.order = resize(s.to, n), resize(s.order, n)
	route(batch, s.to)
	next := make([]int32, len(s.starts))
	for _, part := range s.to {
		next[part+1]++
	}
	for part := range s.columns {
		next[part+1] += next[part]
	}
	copy(s.starts, next)
	for row, part := range s.to {
		s.order[next[part]] = int32(row)
		next[part]++
	}
}

func (s *scatterer) encode() ([][]byte, error) {
	parts := make([][]byte, len(s.columns))
	for part, columns := range s.columns {
		arrays := make([]arrow.Array, len(columns))
		for i, c := range columns {
			data := c.data(s.schema.Field(i).Type, s.lengths[part])
			arrays[i] = array.MakeFromData(data)
		}
		batch := array.NewRecordBatch(s.schema, arrays, int64(s.lengths[part]))
		var err error
		parts[part], err = encode(s.schema, batch)
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func resize(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}
