package collective

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// sample is a collective with inputs that depend on the task and the round, and
// what comes out for each task.
type sample struct {
	name string
	// run makes the call; got is told the result of each task that this
	// process owns.
	run  func(ctx context.Context, e Comm, round int, got func(task int, result string)) error
	want func(task, n, round int) string
	// quiet says that results of adopted tasks are not asked for.
	quiet bool
	// sized says that its algorithm depends on how long messages are: it is tried
	// with all of them.
	sized bool
}

// word is a task's input where strings are put together: an operator that is not
// commutative.
func word(task, round int) []string { return []string{fmt.Sprintf("%d.%d ", task, round), "x"} }

var join = NewOperator("join", func(a, b string) string { return a + b })

func joined(from, to, round int) string {
	var b strings.Builder
	for t := from; t < to; t++ {
		b.WriteString(word(t, round)[0])
	}
	return fmt.Sprint([]string{b.String(), strings.Repeat("x", to-from)})
}

// numbers is a task's input of numbers; its length depends on the task.
func numbers(task, round int) []int64 {
	in := make([]int64, (task*7+round)%5)
	for i := range in {
		in[i] = int64(task*1000 + round*10 + i)
	}
	return in
}

// broadcasted is what a root gives; its length depends on the round.
func broadcasted(round int) []int64 { return append(numbers(5, round), numbers(2, round)...) }

func fractions(task, round int) []float64 {
	in := make([]float64, 37)
	for i := range in {
		in[i] = 1 / float64(1+task*31+round*7+i)
	}
	return in
}

func partsOf(task, n, round int) [][]int32 {
	parts := make([][]int32, n)
	for i := range parts {
		for k := range (task + i + round) % 4 {
			parts[i] = append(parts[i], int32(task*10000+i*100+k))
		}
	}
	return parts
}

// someParts are sent to few tasks, which do not all send back, and perhaps to itself.
func someParts(task, n, round int) map[int][]int32 {
	parts := make(map[int][]int32)
	for to, part := range partsOf(task, n, round) {
		if (task*3+to*5+round)%3 == 0 {
			parts[to] = part
		}
	}
	return parts
}

// ringParts are sent to both neighbors.
func ringParts(task, n, round int) map[int][]int32 {
	all := partsOf(task, n, round)
	return map[int][]int32{(task + 1) % n: all[(task+1)%n], (task + n - 1) % n: all[(task+n-1)%n]}
}

// partsFor are those that all tasks send to one.
func partsFor(task, n, round int, parts func(task, n, round int) map[int][]int32) map[int][]int32 {
	got := make(map[int][]int32)
	for from := range n {
		if part, ok := parts(from, n, round)[task]; ok {
			got[from] = part
		}
	}
	return got
}

func evenParts(task, n, round int) [][]string {
	parts := make([][]string, n)
	for i := range parts {
		parts[i] = []string{fmt.Sprintf("%d>%d.%d ", task, i, round)}
	}
	return parts
}

// rootOf changes from round to round.
func rootOf(n, round int) int { return (3*round + 1) % n }

func restoreOf[In any](f func(task int) In) Option {
	return Restore(func(_ context.Context, task int) (In, error) { return f(task), nil })
}

// takeoverOf reports the results of adopted tasks.
func takeoverOf[Out any](got func(int, string)) Option {
	return Takeover(func(task int, out Out) { got(task, fmt.Sprint(out)) })
}

func samples() []sample {
	return []sample{
		{
			name: "barrier",
			run: func(ctx context.Context, e Comm, _ int, got func(int, string)) error {
				err := Barrier(ctx, e)
				got(e.Rank(), "")
				return err
			},
			want: func(int, int, int) string { return "" },
		},
		{
			name: "once",
			run: func(ctx context.Context, e Comm, _ int, got func(int, string)) error {
				err := Once(ctx, e, func(context.Context) error { return nil })
				got(e.Rank(), "")
				return err
			},
			want: func(int, int, int) string { return "" },
		},
		{
			name: "broadcast",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				var in []int64
				if e.Rank() == root {
					in = broadcasted(round)
				}
				out, err := Broadcast(ctx, e, root, in, restoreOf(func(int) []int64 { return broadcasted(round) }),
					takeoverOf[[]int64](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want:  func(_, _, round int) string { return fmt.Sprint(broadcasted(round)) },
			sized: true,
		},
		{
			name: "broadcast-large",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				large := make([]int64, 40_000)
				large[39_000] = int64(round)
				var in []int64
				if e.Rank() == root {
					in = large
				}
				out, err := Broadcast(ctx, e, root, in, restoreOf(func(int) []int64 { return large }))
				if err == nil {
					got(e.Rank(), fmt.Sprint(len(out), out[39_000]))
				}
				return err
			},
			want:  func(_, _, round int) string { return fmt.Sprint(40_000, round) },
			quiet: true,
		},
		{
			name: "allreduce",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Allreduce(ctx, e, word(e.Rank(), round), join,
					restoreOf(func(t int) []string { return word(t, round) }), takeoverOf[[]string](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(_, n, round int) string { return joined(0, n, round) },
		},
		{
			name: "allreduce-floats",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Allreduce(ctx, e, fractions(e.Rank(), round), Sum[float64](),
					restoreOf(func(t int) []float64 { return fractions(t, round) }), takeoverOf[[]float64](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want:  func(_, n, round int) string { return fmt.Sprint(floatSum(n, round)) },
			sized: true,
		},
		{
			name: "allreduce-parts", // without Takeover, a long one is made in parts
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Allreduce(ctx, e, fractions(e.Rank(), round), Sum[float64](),
					restoreOf(func(t int) []float64 { return fractions(t, round) }), Into(make([]float64, 0, 40)))
				if err == nil {
					got(e.Rank(), fmt.Sprint(out))
				}
				return err
			},
			want:  func(_, n, round int) string { return fmt.Sprint(floatSum(n, round)) },
			quiet: true,
			sized: true,
		},
		{
			name: "reduce-numbers",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				in := func(t int) []int64 { return long(t, round)[:11] }
				out, err := Reduce(ctx, e, root, in(e.Rank()), last, restoreOf(in), takeoverOf[[]int64](got),
					Into(make([]int64, 11)))
				if e.Rank() == root || out != nil {
					got(root, fmt.Sprint(out))
				}
				return err
			},
			want: func(task, n, round int) string {
				if task != rootOf(n, round) {
					return ""
				}
				want := make([]int64, 11)
				for i := range want {
					want[i] = lastOf(i, n, round)
				}
				return fmt.Sprint(want)
			},
			sized: true,
		},
		{
			name: "allreduce-large",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Allreduce(ctx, e, long(e.Rank(), round), last, restoreOf(func(t int) []int64 { return long(t, round) }),
					takeoverOf[[]int64](func(task int, _ string) { got(task, "") }))
				if err == nil {
					err = checkLast(out, e.Size(), round)
				}
				return err
			},
			want: func(int, int, int) string { return "" },
		},
		{
			name: "reduce-large",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				out, err := Reduce(ctx, e, root, long(e.Rank(), round), last,
					restoreOf(func(t int) []int64 { return long(t, round) }))
				if err == nil && (e.Rank() == root || out != nil) {
					err = checkLast(out, e.Size(), round)
				}
				return err
			},
			want: func(int, int, int) string { return "" },
		},
		{
			name: "reduce",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				out, err := Reduce(ctx, e, root, word(e.Rank(), round), join,
					restoreOf(func(t int) []string { return word(t, round) }), takeoverOf[[]string](got))
				if e.Rank() == root || out != nil {
					got(root, fmt.Sprint(out))
				}
				return err
			},
			want: func(task, n, round int) string {
				if task != rootOf(n, round) {
					return ""
				}
				return joined(0, n, round)
			},
		},
		{
			name: "allgather",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Allgather(ctx, e, numbers(e.Rank(), round), restoreOf(func(t int) []int64 { return numbers(t, round) }),
					takeoverOf[[][]int64](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(_, n, round int) string { return fmt.Sprint(allNumbers(n, round)) },
		},
		{
			name: "gather",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				out, err := Gather(ctx, e, root, numbers(e.Rank(), round),
					restoreOf(func(t int) []int64 { return numbers(t, round) }), takeoverOf[[][]int64](got))
				if e.Rank() == root || out != nil {
					got(root, fmt.Sprint(out))
				}
				return err
			},
			want: func(task, n, round int) string {
				if task != rootOf(n, round) {
					return ""
				}
				return fmt.Sprint(allNumbers(n, round))
			},
		},
		{
			name: "scatter",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				root := rootOf(e.Size(), round)
				var in [][]int32
				if e.Rank() == root {
					in = partsOf(root, e.Size(), round)
				}
				out, err := Scatter(ctx, e, root, in, restoreOf(func(t int) [][]int32 { return partsOf(t, e.Size(), round) }),
					takeoverOf[[]int32](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, n, round int) string { return fmt.Sprint(partsOf(rootOf(n, round), n, round)[task]) },
		},
		{
			name: "alltoall",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Alltoall(ctx, e, partsOf(e.Rank(), e.Size(), round),
					restoreOf(func(t int) [][]int32 { return partsOf(t, e.Size(), round) }), takeoverOf[[][]int32](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, n, round int) string {
				all := make([][]int32, n)
				for t := range all {
					all[t] = partsOf(t, n, round)[task]
				}
				return fmt.Sprint(all)
			},
			sized: true,
		},
		{
			name: "exchange",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				in := func(t int) map[int][]int32 { return someParts(t, e.Size(), round) }
				out, err := Exchange(ctx, e, in(e.Rank()), restoreOf(in), takeoverOf[map[int][]int32](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, n, round int) string { return fmt.Sprint(partsFor(task, n, round, someParts)) },
		},
		{
			name: "exchange-mutual",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				in := func(t int) map[int][]int32 { return ringParts(t, e.Size(), round) }
				out, err := Exchange(ctx, e, in(e.Rank()), Mutual(), restoreOf(in), takeoverOf[map[int][]int32](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, n, round int) string { return fmt.Sprint(partsFor(task, n, round, ringParts)) },
		},
		{
			name: "split",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				sub, err := e.Split(ctx, func(task int) int { return task % 2 })
				if err != nil {
					return err
				}
				for range 2 { // the second in another order of owners, if one has died
					in := func(t int) []string { return word(sub.WorldRank(t), round) }
					out, err := Allreduce(ctx, sub, in(sub.Rank()), join, restoreOf(in),
						takeoverOf[[]string](func(task int, result string) { got(sub.WorldRank(task), result) }))
					if err != nil {
						return err
					}
					got(e.Rank(), fmt.Sprint(out))
				}
				return nil
			},
			want: func(task, n, round int) string {
				want := []string{"", ""}
				for t := task % 2; t < n; t += 2 {
					want[0] += word(t, round)[0]
					want[1] += "x"
				}
				return fmt.Sprint(want)
			},
			quiet: true, // a color may die out
		},
		{
			name: "reducescatter",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := ReduceScatter(ctx, e, evenParts(e.Rank(), e.Size(), round), join,
					restoreOf(func(t int) [][]string { return evenParts(t, e.Size(), round) }), takeoverOf[[]string](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, n, round int) string {
				var all string
				for t := range n {
					all += evenParts(t, n, round)[task][0]
				}
				return fmt.Sprint([]string{all})
			},
		},
		{
			name: "scan",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Scan(ctx, e, word(e.Rank(), round), join, restoreOf(func(t int) []string { return word(t, round) }),
					takeoverOf[[]string](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, _, round int) string { return joined(0, task+1, round) },
		},
		{
			name: "exscan",
			run: func(ctx context.Context, e Comm, round int, got func(int, string)) error {
				out, err := Exscan(ctx, e, word(e.Rank(), round), join, restoreOf(func(t int) []string { return word(t, round) }),
					takeoverOf[[]string](got))
				got(e.Rank(), fmt.Sprint(out))
				return err
			},
			want: func(task, _, round int) string {
				if task == 0 {
					return "[]"
				}
				return joined(0, task, round)
			},
		},
	}
}

// long is an input of several pieces, and last an operator that takes the task of
// the right one and adds the rest: it shows the order, and that everything was
// combined once.
func long(task, round int) []int64 {
	in := make([]int64, longest)
	for i := range in {
		in[i] = int64(task<<20 | (i+round)%1000)
	}
	return in
}

const (
	longest = 33_000
	lowBits = 1<<20 - 1
)

var last = NewOperator("last", func(a, b int64) int64 { return b&^lowBits | (a+b)&lowBits })

// lastOf is an element of the result.
func lastOf(i, n, round int) int64 { return int64((n-1)<<20 | n*((i+round)%1000)) }

func checkLast(out []int64, n, round int) error {
	for i, got := range out {
		if want := lastOf(i, n, round); len(out) != longest || got != want {
			return fmt.Errorf("element %d of %d is %x, want %x", i, len(out), got, want)
		}
	}
	return nil
}

func allNumbers(n, round int) [][]int64 {
	all := make([][]int64, n)
	for t := range all {
		all[t] = numbers(t, round)
	}
	return all
}

var floatSums sync.Map // of {n, round}

// floatSum is the sum as a run without failures has it, bit by bit.
func floatSum(n, round int) []float64 {
	if sum, ok := floatSums.Load([2]int{n, round}); ok {
		return sum.([]float64)
	}
	inputs := make([][]float64, n)
	for task := range inputs {
		inputs[task] = fractions(task, round)
	}
	sum := foldedSum(inputs)
	floatSums.Store([2]int{n, round}, sum)
	return sum
}

// foldedSum adds inputs in the order of recursive doubling, and overwrites them.
func foldedSum(inputs [][]float64) []float64 {
	f := foldOf(len(inputs))
	sums := make([][]float64, f.power)
	for i := range sums {
		sums[i] = inputs[f.task(i)]
		if p, ok := f.partner(f.task(i)); ok {
			Sum[float64]().Combine(sums[i], sums[i], inputs[p])
		}
	}
	for ; len(sums) > 1; sums = sums[:len(sums)/2] {
		for i := range len(sums) / 2 {
			sums[i] = sums[2*i]
			Sum[float64]().Combine(sums[i], sums[2*i], sums[2*i+1])
		}
	}
	return sums[0]
}
