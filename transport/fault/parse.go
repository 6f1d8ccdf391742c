package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Limits of a script. They are far beyond use, and catch mistakes.
const (
	maxStatements = 10_000
	maxRanges     = 1000 // of one partition
	maxDuration   = 24 * time.Hour
)

// ParseError is returned by [Parse]. It says where a script is wrong, and what was
// expected there.
type ParseError struct {
	Line int // from 1
	Got  string
	Want string
}

func (e *ParseError) Error() string {
	got := "the end of the line"
	if e.Got != "" {
		got = strconv.Quote(e.Got)
	}
	return fmt.Sprintf("fault: line %d: got %s, expected %s", e.Line, got, e.Want)
}

// Parse parses a script: one statement per line; # starts a comment. "at 100ms" in
// front of a statement delays it; others apply at once. The ranks at the end of the
// first five are 3->7 for one direction, 3 7 for both, and none for all.
//
//	drop 5%                 drop that share of all frames
//	duplicate 2% 3->7       send that share twice
//	reorder 5% within 3ms   hold that share back, so that others overtake
//	delay 1ms jitter 2ms    hold all back, in order; jitter is optional
//	cut 3 7                 drop all
//	partition 0-8 | 9-15    drop all between groups; a group is like 0-3 7 9
//	heal                    end all cuts and the partition
//	freeze 5                stop a rank, as SIGSTOP does
//	thaw 5                  resume it
//	kill 4                  end a rank
//	reset 2                 break all connections of a rank
//
// "drop 0%" and the like end a fault. An error is a [*ParseError].
func Parse(script string) (Script, error) {
	var s Script
	number := 0
	for line := range strings.Lines(script) {
		number++
		line, _, _ = strings.Cut(line, "#")
		p := parser{words: strings.Fields(strings.ReplaceAll(line, "|", " | "))}
		if len(p.words) == 0 {
			continue
		}
		if len(s) == maxStatements {
			return nil, &ParseError{number, p.words[0], fmt.Sprintf("at most %d statements", maxStatements)}
		}
		statement := p.statement()
		p.end()
		if p.err != nil {
			p.err.Line = number
			return nil, p.err
		}
		s = append(s, statement)
	}
	return s, nil
}

// parser parses the words of one line. After its first error it parses nothing more,
// so that the error is checked once, at the end.
type parser struct {
	words []string
	err   *ParseError
}

func (p *parser) peek() string {
	if p.err != nil || len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) next() string {
	word := p.peek()
	if word != "" {
		p.words = p.words[1:]
	}
	return word
}

// accept takes the next word if it is this one.
func (p *parser) accept(word string) bool {
	if p.peek() != word {
		return false
	}
	p.next()
	return true
}

func (p *parser) fail(got, want string) {
	if p.err == nil {
		p.err = &ParseError{Got: got, Want: want}
	}
}

func (p *parser) end() {
	if word := p.peek(); word != "" {
		p.fail(word, "the end of the line")
	}
}

func (p *parser) statement() Statement {
	var s Statement
	if p.accept("at") {
		s.At = p.duration()
	}
	s.Fault = p.fault()
	return s
}

func (p *parser) fault() Fault {
	switch verb := p.next(); verb {
	case "drop":
		return Drop{Percent: p.percent(), On: p.pairs()}
	case "duplicate":
		return Duplicate{Percent: p.percent(), On: p.pairs()}
	case "reorder":
		return Reorder{Percent: p.percent(), Within: p.within(), On: p.pairs()}
	case "delay":
		return Delay{Fixed: p.duration(), Jitter: p.jitter(), On: p.pairs()}
	case "cut":
		return Cut{On: p.pairs()}
	case "partition":
		return p.partition()
	case "heal":
		return Heal{}
	case "freeze":
		return Freeze{p.rank(p.next())}
	case "thaw":
		return Thaw{p.rank(p.next())}
	case "kill":
		return Kill{p.rank(p.next())}
	case "reset":
		return Reset{p.rank(p.next())}
	default:
		p.fail(verb, "drop, duplicate, reorder, delay, cut, partition, heal, freeze, thaw, kill or reset")
		return nil
	}
}

func (p *parser) within() time.Duration {
	if !p.accept("within") {
		p.fail(p.peek(), `"within" and a duration`)
	}
	return p.duration()
}

func (p *parser) jitter() time.Duration {
	if !p.accept("jitter") {
		return 0
	}
	return p.duration()
}

func (p *parser) percent() float64 {
	word := p.next()
	number, ok := strings.CutSuffix(word, "%")
	value, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(0 <= value && value <= 100) { // So NaN fails too.
		p.fail(word, "a percentage from 0% to 100%, as 5%")
	}
	return value
}

func (p *parser) duration() time.Duration {
	word := p.next()
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 || d > maxDuration {
		p.fail(word, fmt.Sprintf("a duration up to %v, as 100ms", maxDuration))
	}
	return d
}

// rank parses a rank.
func (p *parser) rank(word string) protocol.Rank {
	r, err := strconv.ParseUint(word, 10, 63)
	if err != nil {
		p.fail(word, "a rank, as 3")
	}
	return protocol.Rank(r)
}

func (p *parser) pairs() Pairs {
	first := p.next()
	if first == "" {
		return Pairs{}
	}
	got := first
	from, to, oneWay := strings.Cut(first, "->")
	if !oneWay {
		to = p.next()
		got = words(first, to)
	}
	a, errA := strconv.ParseUint(from, 10, 63)
	b, errB := strconv.ParseUint(to, 10, 63)
	switch {
	case errA != nil || errB != nil || a == b:
		p.fail(got, "two ranks, as 3->7 for one direction or 3 7 for both")
		return Pairs{}
	case oneWay:
		return OneWay(protocol.Rank(a), protocol.Rank(b))
	}
	return Between(protocol.Rank(a), protocol.Rank(b))
}

func (p *parser) partition() Partition {
	var f Partition
	var all []Range
	for {
		var group []Range
		for word := p.peek(); word != "" && word != "|"; word = p.peek() {
			r := p.ranks(p.next(), all)
			group, all = append(group, r), append(all, r)
		}
		if len(group) == 0 {
			p.fail(p.peek(), "a group of ranks, as 0-3 7 9")
			return f
		}
		f.Groups = append(f.Groups, group)
		if !p.accept("|") {
			return f
		}
	}
}

// ranks parses a range of ranks, none of which may have been named before.
func (p *parser) ranks(word string, before []Range) Range {
	first, last, ok := strings.Cut(word, "-")
	if !ok {
		last = first
	}
	r := Range{p.rank(first), p.rank(last)}
	if r.First > r.Last {
		p.fail(word, "the smaller rank first")
	}
	if len(before) == maxRanges {
		p.fail(word, fmt.Sprintf("at most %d ranges of ranks", maxRanges))
	}
	for _, b := range before {
		if r.First <= b.Last && b.First <= r.Last {
			p.fail(word, fmt.Sprintf("ranks that were not named before, in %v", b))
		}
	}
	return r
}
