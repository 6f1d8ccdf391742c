// Package prose checks the language of pages and help texts: the field's words, and sentences that
// name their subject.
package prose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule is a habit of language, and how often it may occur in all pages together.
type Rule struct {
	Name  string
	Limit int

	pattern *regexp.Regexp
}

// Rules are counted over README and docs, as grep counts them there, and in all help texts.
var Rules = []Rule{
	{"a clause instead of a noun", 25, regexp.MustCompile(`(?i)\bwhat (is|was|has|the)\b`)},
	{"a calque", 20, regexp.MustCompile(
		`(?i)\b(goes on|go on|anew|by itself|beside|mend(s|ed)?|(is|are|was) told|to be had)\b`)},
}

// Find returns the phrases of a text that a rule counts.
func (r *Rule) Find(text string) []string { return r.pattern.FindAllString(text, -1) }

// retired maps words that must not occur in prose to those to use instead.
var retired = map[string]string{
	`although`:                          "even when",
	`as soon as may be`:                 "as soon as possible",
	`delegates?`:                        "gateway",
	`doors?`:                            "admission control, authentication",
	`(fed|corrected) around`:            "bypassed, repaired by correction",
	`folders?`:                          "directory",
	`gives? (a|no) sign`:                "wakes, signals",
	`hardly runs?`:                      "is starved of CPU",
	`has the (reasons|rest)`:            "for the trade-offs, see",
	`in the end`:                        "eventually",
	`is no member`:                      "is not a member",
	`laborator(y|ies)`:                  "lab",
	`li(fe|ves)`:                        "lifecycle, membership session, is alive",
	`notices?`:                          "notification, marker",
	`refusing`:                          "crashed",
	`run-through`:                       "takeover",
	`seats?`:                            "persisted vote, restarted voter",
	`silent`:                            "unresponsive, unreported",
	`(the|an?|its|one|each|new) leads?`: "leader",
	`troubles?`:                         "faults, failures",
}

var (
	retiredWords = regexp.MustCompile(`(?i)\b(` + strings.Join(sortedKeys(), "|") + `)\b`)
	comments     = regexp.MustCompile(`(?s)<!--.*?-->`)
	blocks       = regexp.MustCompile("(?ms)^```.*?^```")
	code         = regexp.MustCompile("`[^`\n]*`")
	targets      = regexp.MustCompile(`\]\([^)]*\)`)
)

func sortedKeys() (keys []string) {
	for key := range retired {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Markdown returns the sentences of a page: without code, comments and the targets of links. It
// keeps all line breaks.
func Markdown(page string) string {
	for _, left := range []*regexp.Regexp{comments, blocks, code} {
		page = left.ReplaceAllStringFunc(page, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	}
	return targets.ReplaceAllString(page, "]")
}

// Retired returns a complaint for each retired word of a text.
func Retired(text string) (complaints []string) {
	for i, line := range strings.Split(text, "\n") {
		for _, word := range retiredWords.FindAllString(line, -1) {
			complaints = append(complaints, fmt.Sprintf("line %d: %q: write %s", i+1, word, instead(word)))
		}
	}
	return complaints
}

var flagNames = regexp.MustCompile(`--?[a-z][a-z-]*`)

// Help returns complaints about the help texts of a program, by command. Names of flags and those
// given are not prose.
func Help(texts map[string]string, names ...string) (complaints []string) {
	named := regexp.MustCompile(`\b(` + strings.Join(append(names, "no name"), "|") + `)\b`)
	found := make([][]string, len(Rules))
	for command, help := range texts {
		help = named.ReplaceAllString(flagNames.ReplaceAllString(help, ""), "")
		for _, c := range Retired(help) {
			complaints = append(complaints, command+" --help: "+c)
		}
		for i := range Rules {
			for _, phrase := range Rules[i].Find(help) {
				found[i] = append(found[i], fmt.Sprintf("%s: %q", command, phrase))
			}
		}
	}
	for i, r := range Rules {
		if len(found[i]) > r.Limit {
			complaints = append(complaints, fmt.Sprintf("%s occurs %d times, more than %d: %s", r.Name, len(found[i]), r.Limit,
				found[i]))
		}
	}
	return complaints
}

func instead(word string) string {
	for _, key := range sortedKeys() {
		if regexp.MustCompile(`(?i)^(` + key + `)$`).MatchString(word) {
			return retired[key]
		}
	}
	return "another word"
}
