// Package experiments connects protocols and the simulator. A [Scenario] describes a
// broadcast: its protocol, its number of processes, its faults. A [Report] summarizes
// many seeded runs of it. Figures and tables of the papers are scenarios with names.
package experiments
