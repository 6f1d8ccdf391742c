// Package reproduce does the evaluations of the papers again. Every figure and
// table is an [Experiment] with a name: it draws what the paper shows and sets
// what the paper's text states in numbers beside what comes out here.
//
// Measuring and presenting are apart. A [Source] does the runs and leaves tables
// of plain numbers; an experiment makes pictures and claims of them, and several
// may share one source. So what was measured once can be presented again, and an
// interrupted reproduction goes on where it was.
package reproduce
