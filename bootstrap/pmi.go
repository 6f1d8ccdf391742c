package bootstrap

// pmi is the interface of MPICH's launcher, hydra, and of those after it. Where
// the others are, they tell over a socket only (PMI_FD, PMI_PORT).
type pmi struct{}

func (pmi) name() string       { return "PMI" }
func (pmi) looksFor() []string { return []string{"PMI_RANK"} }

func (pmi) detect(env environment) (Place, bool, error) {
	const local = "MPI_LOCALRANKID" // hydra's
	switch {
	case env("PMI_RANK") == "":
		return Place{}, false, nil
	case env(local) == "" && env("SLURM_PROCID") != "":
		return Place{}, false, nil // srun speaks PMI too, and says more in words of its own
	}
	n := names{rank: "PMI_RANK", size: "PMI_SIZE"}
	if env(local) != "" {
		n.local = local
	}
	place, err := env.place(n)
	if err != nil {
		return Place{}, false, err
	}
	err = env.deriveOnOneHost(&place, "MPI_LOCALNRANKS")
	return place, err == nil, err
}
