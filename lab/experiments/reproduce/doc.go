// Package reproduce repeats the evaluations of the papers. Every figure and table is
// an [Experiment] with a name: it draws what the paper shows, and puts the numbers that
// the paper states beside those measured here.
//
// Measuring and presenting are separate. A [Source] runs and leaves tables of
// numbers. An experiment makes pictures and claims of them, and several may share one
// source. So a measurement can be presented again, and an interrupted reproduction
// continues where it was.
package reproduce
