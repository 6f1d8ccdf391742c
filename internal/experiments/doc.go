// Package experiments puts protocols and the simulator together: a [Scenario]
// says what is broadcast how, on how many processes, with which faults; a
// [Report] says what many seeded runs of it showed. Figures and tables of the
// papers are scenarios with names.
package experiments
