package planner

// Pick makes a plan of any layouts that are right, by a number, and sends all groups to the
// tasks of their keys.
func (q *Question) Pick(number int) {
	q.pick = func(right []layout, _ func(layout) float64) layout { return right[number%len(right)] }
}
