package planner

import (
	"slices"
	"strings"
)

// A query is planned only if every part of its tree is one that the planner knows. A node, a key
// or a function that is not listed here is refused: DuckDB may give it a meaning that changes
// what tasks may do with their own rows.

// understand refuses a tree that has a part that is not listed.
func understand(tree node) error {
	if err := known(tree); err != nil {
		return err
	}
	return refuseLostOrder(tree, true)
}

// shape is what the keys of a node may have: nil is anything that is itself understood, and a list
// is one of these texts. A key that is not in the shape has to be empty.
type shape map[string][]string

var order = []string{"ASCENDING", "DESCENDING", "ORDER_DEFAULT"}

// shapes are the nodes, by class for expressions and otherwise by type.
var shapes = map[string]shape{
	// queries
	"SELECT_NODE": {
		"modifiers": nil, "cte_map": nil, "select_list": nil, "from_table": nil, "where_clause": nil,
		"group_expressions": nil,
		"group_sets":        nil, "aggregate_handling": {"STANDARD_HANDLING", "FORCE_AGGREGATES"}, "having": nil,
		"qualify": nil,
	},
	"SET_OPERATION_NODE": {
		"modifiers": nil, "cte_map": nil, "left": nil, "right": nil, "children": nil, "setop_all": nil,
		"setop_type": {"UNION", "EXCEPT", "INTERSECT"},
	},
	"DISTINCT_MODIFIER":      {"distinct_on_targets": nil},
	"ORDER_MODIFIER":         {"orders": nil},
	"LIMIT_MODIFIER":         {"limit": nil, "offset": nil},
	"LIMIT_PERCENT_MODIFIER": {"limit": nil, "offset": nil},
	"order": {
		"type": order, "null_order": {"NULLS FIRST", "NULLS LAST", "ORDER_DEFAULT"},
		"expression": nil,
	},

	// FROM
	"JOIN": {
		"alias": nil, "left": nil, "right": nil, "condition": nil, "using_columns": nil, "ref_type": {"REGULAR", "CROSS"},
		"join_type": {"INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"},
	},
	"BASE_TABLE": {
		"alias": nil, "schema_name": nil, "table_name": nil, "column_name_alias": nil,
		"catalog_name": nil,
	},
	"table subquery": {"alias": nil, "subquery": nil, "column_name_alias": nil},
	"TABLE_FUNCTION": {
		"alias": nil, "function": nil, "column_name_alias": nil,
		"with_ordinality": {"WITHOUT_ORDINALITY"},
	},
	"EXPRESSION_LIST": {
		"alias": nil, "expected_names": nil, "expected_types": nil, "values": nil,
		"column_name_alias": nil,
	},
	"EMPTY": {"alias": nil},

	// expressions
	"COLUMN_REF":  {"column_names": nil},
	"CONSTANT":    {"value": nil},
	"CASE":        {"case_checks": nil, "else_expr": nil},
	"CAST":        {"child": nil, "cast_type": nil, "try_cast": nil},
	"BETWEEN":     {"input": nil, "lower": nil, "upper": nil},
	"CONJUNCTION": {"type": {"CONJUNCTION_AND", "CONJUNCTION_OR"}, "children": nil},
	"COMPARISON": {"left": nil, "right": nil, "type": {
		"COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_LESSTHAN", "COMPARE_GREATERTHAN", "COMPARE_LESSTHANOREQUALTO",
		"COMPARE_GREATERTHANOREQUALTO", "COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM",
	}},
	"OPERATOR": {"children": nil, "type": {
		"COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE",
		"ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT", "GROUPING_FUNCTION",
	}},
	"FUNCTION": {
		"function_name": nil, "schema": {"", "main"}, "children": nil, "filter": nil, "order_bys": nil, "distinct": nil,
		"is_operator": nil,
	},
	"SUBQUERY": {
		"subquery_type": {"SCALAR", "EXISTS", "NOT_EXISTS", "ANY"}, "subquery": nil, "child": nil,
		"comparison_type": nil,
	},
	"WINDOW": {
		"type": {
			"WINDOW_AGGREGATE", "WINDOW_ROW_NUMBER", "WINDOW_RANK", "WINDOW_RANK_DENSE", "WINDOW_PERCENT_RANK",
			"WINDOW_CUME_DIST",
			"WINDOW_NTILE", "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE", "WINDOW_LEAD", "WINDOW_LAG",
		},
		"function_name": nil, "schema": {"", "main"}, "children": nil, "partitions": nil, "orders": nil, "start": nil,
		"end":        nil,
		"start_expr": nil, "end_expr": nil, "offset_expr": nil, "default_expr": nil, "ignore_nulls": nil, "filter_expr": nil,
		"exclude_clause": nil, "distinct": nil,
	},
	"STAR": {
		"relation_name": nil, "exclude_list": nil, "replace_list": nil, "columns": nil, "expr": nil,
		"qualified_exclude_list": nil,
		"rename_list":            nil,
	},

	// parts of these
	"check": {"when_expr": nil, "then_expr": nil},
	"with":  {"map": nil},
	"entry": {"key": nil, "value": nil},
	"cte":   {"aliases": nil, "query": nil, "materialized": nil},
	"query": {"node": nil},
}

// shapeOf returns the name of a node's shape, or "" for a value or a type, whose meaning is the
// same everywhere.
func shapeOf(n node) string {
	has := func(key string) bool { _, ok := n[key]; return ok }
	switch class := text(n, "class"); {
	case class != "":
		return class
	case kind(n) == "SUBQUERY":
		return "table subquery"
	case has("null_order"):
		return "order"
	case has("when_expr"):
		return "check"
	case has("map"):
		return "with"
	case has("key"):
		return "entry"
	case has("query"):
		return "cte"
	case has("node"):
		return "query"
	case has("is_null") || has("id"):
		return ""
	}
	return kind(n)
}

func known(v any) error {
	switch v := v.(type) {
	case []any:
		for _, child := range v {
			if err := known(child); err != nil {
				return err
			}
		}
	case node:
		name := shapeOf(v)
		if name == "" {
			return nil
		}
		keys, ok := shapes[name]
		if !ok {
			return notUnderstood(name, text(v, "type"))
		}
		for key, value := range v {
			if unordered := sortedList(v); key == "children" && unordered != nil { // The order of its rows does not matter.
				value = append(list(children(v, key)[1:]...), unordered["children"], unordered["filter"])
			}
			if err := knownKey(v, keys, key, value); err != nil {
				return err
			}
		}
		return knownFunction(v)
	}
	return nil
}

// sortedList returns the list(x) that a function sorts, or nil: DuckDB parses list(x ORDER BY x) as
// list_sort(list(x), …).
func sortedList(n node) node {
	if all := children(n, "children"); len(all) > 0 && (nameOf(n) == "list_sort" || nameOf(n) == "list_reverse_sort") &&
		nameOf(all[0]) == "list" {
		return all[0]
	}
	return nil
}

func knownKey(n node, keys shape, key string, value any) error {
	allowed, listed := keys[key]
	switch {
	case allowed != nil:
		if is, _ := value.(string); !slices.Contains(allowed, is) {
			return notUnderstood(is, key)
		}
	case listed:
		return known(value)
	case key == "sample" && value != nil:
		return refuse("a sample takes other rows each time: write a condition, such as id %% 100 = 0")
	case key != "class" && key != "type" && key != "alias" && key != "query_location" && !empty(value):
		return notUnderstood(strings.ToUpper(strings.ReplaceAll(key, "_", " ")), kind(n))
	}
	return nil
}

func notUnderstood(what, of string) error {
	if what == of || of == "" {
		return refuse("%s is not supported: rewrite the query without it", what)
	}
	return refuse("%s (%s) is not supported: rewrite the query without it", what, of)
}

// empty reports whether a key has what it has when the query does not mention it.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == "" || strings.HasSuffix(v, "_DEFAULT")
	case bool:
		return !v
	case []any:
		return len(v) == 0
	}
	return false
}

// words returns the set of words in a text.
func words(text string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// scalars are the functions whose value follows from their arguments alone, everywhere.
var scalars = words(`+ - * / // % ^ ** || & | ~ << >> !~~ ~~ !~~* ~~* ~~~ @ ! abs acos acosh add array_contains array_extract array_length
	array_slice array_value ascii asin atan atan2 atanh bit_count bit_length cbrt ceil ceiling century char_length character_length chr
	concat concat_ws contains cos cosh cot damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff datepart
	datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade decode degrees divide editdist3 element_at encode ends_with
	epoch epoch_ms epoch_ns epoch_us even exp factorial fdiv floor fmod format from_base64 from_hex gamma gcd generate_series
	greatest greatest_common_divisor hamming hash hex hour ilike_escape instr isfinite isinf isnan isodow isoyear jaccard
	jaro_similarity jaro_winkler_similarity json_array_length json_extract json_extract_string json_type json_valid julian last_day
	lcase lcm least left len length levenshtein lgamma like_escape list_aggregate list_concat list_contains list_distinct list_element
	list_extract list_has list_position list_reverse list_reverse_sort list_slice list_sort list_sum list_max list_min list_unique
	list_value ln log log10 log2 lower lpad ltrim make_date make_time make_timestamp map map_extract map_keys map_values md5
	microsecond millennium millisecond minute mod month monthname multiply nanosecond nextafter not_ilike_escape not_like_escape
	nullif octet_length ord parse_filename pi position pow power prefix printf quarter radians range regexp_escape regexp_extract
	regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right round
	round_even roundbankers row rpad rtrim second sha1 sha256 sign signbit sin sinh split split_part sqrt starts_with str_split
	strftime string_split string_split_regex string_to_array strip_accents strlen strpos strptime struct_extract struct_pack substr
	substring subtract suffix tan tanh time_bucket to_base to_base64 to_binary to_days to_hex to_hours to_microseconds to_milliseconds
	to_minutes to_months to_seconds to_weeks to_years translate trim trunc try_strptime typeof ucase unicode unnest upper url_decode
	url_encode week weekday weekofyear xor year yearweek`)

// aggregates that do not depend on the order of rows. Where several values are right, as with
// arg_max of equal maxima, any of them is.
var orderless = words(`sum count count_star min max avg mean bool_and bool_or any_value arbitrary arg_max arg_min argmax argmin max_by
	min_by median quantile quantile_cont quantile_disc stddev stddev_samp stddev_pop variance var_samp var_pop sem bit_and bit_or bit_xor
	product count_if countif mad skewness kurtosis kurtosis_pop corr covar_samp covar_pop regr_slope regr_intercept regr_r2 regr_count
	regr_avgx regr_avgy regr_sxx regr_syy regr_sxy entropy approx_count_distinct fsum kahan_sum favg sum_no_overflow histogram`)

// ordered are aggregates that need an ORDER BY for their value to be determined.
var ordered = words("first last list array_agg string_agg group_concat listagg mode")

// unstable are functions whose value does not follow from their arguments. Those that are in none of
// these lists are refused, too.
var unstable = words(`random uuid uuidv4 uuidv7 gen_random_uuid nextval currval setseed now today current_date current_time
	current_timestamp current_localtime current_localtimestamp get_current_time get_current_timestamp transaction_timestamp localtime
	localtimestamp ago age current_database current_schema current_schemas current_user current_query txid_current`)

// knownFunction refuses functions and windows whose value is not determined.
func knownFunction(n node) error {
	name := nameOf(n)
	switch text(n, "class") {
	case "FUNCTION":
		switch orders := children(child(n, "order_bys"), "orders"); {
		case unstable[name]:
			return refuseUnstable(name)
		case ordered[name] && len(orders) == 0:
			return refuse("the value of %s() depends on the order of rows: write %s(… ORDER BY …)", name, name)
		case !ordered[name] && !orderless[name] && !scalars[name]:
			return refuse("function %s() is not supported", name)
		}
		return noNested(n)
	case "WINDOW":
		return knownWindow(n)
	}
	return nil
}

// noNested refuses subqueries in the arguments of an aggregate.
func noNested(n node) (err error) {
	if isAggregate(n) {
		each([]any{n["children"], n["filter"], n["order_bys"]}, func(inner node) bool {
			if isSubquery(inner) {
				err = refuse("%s() of a subquery is not supported: write the subquery in FROM", nameOf(n))
			}
			return err == nil
		})
	}
	return err
}

// numbered are the window functions that give rows of equal order different values.
var numbered = words(
	"row_number ntile first_value first last_value last nth_value lead lag list array_agg string_agg group_concat listagg mode")

func knownWindow(n node) error {
	name, orders := nameOf(n), children(n, "orders")
	rows := strings.HasSuffix(text(n, "start"), "_ROWS") || strings.HasSuffix(text(n, "end"), "_ROWS")
	switch {
	case kind(n) == "WINDOW_AGGREGATE" && !orderless[name] && !ordered[name]:
		return refuse("window function %s() is not supported", name)
	case len(orders) == 0 && (numbered[name] || rows || text(n, "exclude_clause") != "NO_OTHER"):
		return refuse("the value of %s() OVER depends on the order of rows: write OVER (… ORDER BY …)", name)
	}
	return nil
}

// refuseLostOrder refuses a query whose rows depend on an order that ends with a subquery.
func refuseLostOrder(v any, root bool) (err error) {
	each(v, func(n node) bool {
		if err != nil || !strings.HasSuffix(kind(n), "_NODE") {
			return err == nil
		}
		orders, limits, on := false, false, false
		for _, m := range children(n, "modifiers") {
			orders = orders || kind(m) == "ORDER_MODIFIER"
			limits = limits || strings.HasPrefix(kind(m), "LIMIT")
			on = on || len(children(m, "distinct_on_targets")) > 0
		}
		top := root
		root = false
		switch {
		case on && !orders:
			err = refuse("DISTINCT ON without ORDER BY takes any row of equal ones: write ORDER BY")
		case !top && orders && !limits && !on:
			err = refuse("ORDER BY in a subquery or WITH has no effect without LIMIT: write it in the outermost query")
		case !top && limits && !orders:
			err = refuse("LIMIT in a subquery or WITH without ORDER BY takes any rows: write ORDER BY")
		case limits && !orders && hasOrder(n["from_table"], n["left"], n["right"], n["children"]):
			err = refuse("LIMIT over an ordered subquery without ORDER BY takes any rows: write ORDER BY next to LIMIT")
		}
		return err == nil
	})
	return err
}

func hasOrder(from ...any) (found bool) {
	each(from, func(n node) bool {
		found = found || kind(n) == "ORDER_MODIFIER" && len(children(n, "orders")) > 0
		return !found
	})
	return found
}
