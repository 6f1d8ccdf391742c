package reproduce

// Catalog returns all experiments, paper by paper and in the order of their
// figures. What takes real processes comes last: it wants the machine for
// itself.
func Catalog() []Experiment {
	faults, scaling, processes := faultRuns(), scalingRuns(), processRuns()
	all := []Experiment{
		figure1b(), figure5(), figure6(), figure7(), lemma2(),
		figure8(faults), figure9(faults), figure10(faults), table1(faults), opportunistic(),
		gossipFigure1(),
	}
	for _, f := range gossipTotals() {
		all = append(all, f.experiment())
	}
	all = append(all, gossipFigure7(), gossipFigure7a(scaling), gossipFigure7b(scaling))
	for _, b := range testBeds() {
		all = append(all, b.experiment())
	}
	all = append(all, smProtocol(), openDelayed(), openOverlapped(), openDying(), openRacks(), openHealing(), openOffers(),
		simSpeed())
	all = append(all, figure11(processes), figure12(processes), smProcesses())
	overheads := overheadRuns()
	for _, f := range overheadFigures() {
		all = append(all, f.experiment(overheads))
	}
	all = append(all, recovery(overheads))
	return append(append(all, queryFigures(queryRuns())...), sampleSort())
}
