package testutil

import (
	"os"
	"strconv"
)

// Knob is an environment variable by which people change what tests do. Knobs has all that
// there are. In addition, Go's -short leaves out tests that take long.
type Knob string

// The knobs.
const (
	Full         Knob = "PLEACH_FULL"
	Seed         Knob = "PLEACH_SEED"
	Seeds        Knob = "PLEACH_SEEDS"
	First        Knob = "PLEACH_FIRST"
	Case         Knob = "PLEACH_CASE"
	Rounds       Knob = "PLEACH_ROUNDS"
	Joins        Knob = "PLEACH_JOINS"
	Members      Knob = "PLEACH_MEMBERS"
	Bytes        Knob = "PLEACH_BYTES"
	Seconds      Knob = "PLEACH_SECONDS"
	Minutes      Knob = "PLEACH_MINUTES"
	Inputs       Knob = "PLEACH_INPUTS"
	UpdateGolden Knob = "PLEACH_UPDATE_GOLDEN"
	RecordAPI    Knob = "PLEACH_RECORD_API"
	Reproduced   Knob = "PLEACH_REPRODUCED"
	Previous     Knob = "PLEACH_PREVIOUS"
	Screenshots  Knob = "PLEACH_SCREENSHOTS"
)

// Knobs says what each knob does. CONTRIBUTING.md has the same table.
var Knobs = []struct {
	Knob
	Does string
}{
	{Full, "runs large sizes and many cases, and judges times"},
	{Seed, "runs this seed alone, and prints what happens where a test can"},
	{Seeds, "runs so many seeds"},
	{First, "begins with this seed"},
	{Case, "runs the case of this name alone"},
	{Rounds, "repeats a case so often"},
	{Joins, "has so many processes join"},
	{Members, "begins with so many members"},
	{Bytes, "copies a file of so many bytes"},
	{Seconds, "puts load on a group for so long"},
	{Minutes, "watches a busy host for so long"},
	{Inputs, "sends so many random inputs over each kind of session"},
	{UpdateGolden, "records golden files instead of comparing with them"},
	{RecordAPI, "records the exported names and the page of settings"},
	{Reproduced, "compares the verdicts in this directory with those on record"},
	{Previous, "is the program of the version before, for upgrades"},
	{Screenshots, "is the directory for screenshots of the agent's web UI"},
}

// Text returns what the knob is set to.
func (k Knob) Text() string { return os.Getenv(string(k)) }

// On reports whether the knob is set.
func (k Knob) On() bool { return k.Text() != "" }

// Or returns the number that the knob is set to, or another one.
func (k Knob) Or(otherwise int) int { return int(k.OrFloat(float64(otherwise))) }

// OrFloat is Or for numbers that need not be whole. It panics if the knob is set to
// something else: a run of hours with the wrong number is worse.
func (k Knob) OrFloat(otherwise float64) float64 {
	if !k.On() {
		return otherwise
	}
	n, err := strconv.ParseFloat(k.Text(), 64)
	if err != nil {
		panic(string(k) + ": " + err.Error())
	}
	return n
}
