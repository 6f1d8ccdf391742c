package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// GoldenFields compares the fields of what commands write with --json with those of
// testdata/json-fields.golden: scripts read them, so they may not change with the code.
// Every command with the flag has to be there.
func GoldenFields(t *testing.T, root *cobra.Command, written map[string][]byte) {
	t.Helper()
	var lines []string
	for command, text := range written {
		for _, field := range fieldsOf(t, text) {
			lines = append(lines, command+": "+field)
		}
	}
	testutil.GoldenLines(t, "testdata/json-fields.golden", lines)
	for _, command := range commandsWithJSON(root, "") {
		if written[command] == nil {
			t.Errorf("the fields of %s %s --json are not recorded", root.Name(), command)
		}
	}
}

// commandsWithJSON are those that have the flag, with all words but the first.
func commandsWithJSON(cmd *cobra.Command, path string) (names []string) {
	if cmd.Flags().Lookup("json") != nil {
		names = append(names, path)
	}
	for _, c := range cmd.Commands() {
		names = append(names, commandsWithJSON(c, strings.TrimSpace(path+" "+c.Name()))...)
	}
	return names
}

// WrittenBy is what a function writes.
func WrittenBy(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Filled returns a value none of whose fields is left out for being zero.
func Filled[T any]() (v T) {
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		if v.CanInt() {
			v.SetInt(1)
		} else if v.CanUint() {
			v.SetUint(1)
		}
	}
}

// fieldsOf returns the names of all fields in one or several JSON values, as paths.
// Ranks that are names are all the same.
func fieldsOf(t *testing.T, text []byte) (fields []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			slices.Sort(fields)
			return slices.Compact(fields)
		} else if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		fields = appendFields(fields, "", value)
	}
}

func appendFields(fields []string, path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if _, err := strconv.Atoi(name); err == nil {
				name = "RANK"
			}
			fields = appendFields(fields, path+"."+name, inner)
		}
	case []any:
		for _, inner := range v {
			fields = appendFields(fields, path+"[]", inner)
		}
		if len(v) == 0 {
			fields = append(fields, path+"[]")
		}
	default:
		fields = append(fields, fmt.Sprintf("%s %s", path, typeOfJSON(v)))
	}
	return fields
}

func typeOfJSON(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}
