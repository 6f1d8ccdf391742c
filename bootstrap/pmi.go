package bootstrap

// pmi is the interface of MPICH's launcher, hydra, and of those after it. Where
// the others are, they tell over a socket only (PMI_FD, PMI_PORT).
type pmi struct{}

func (pmi) name() string        { return "PMI" }
func (pmi) variables() []string { return []string{"PMI_RANK"} }

func (pmi) detect(env environment) (Assignment, bool, error) {
	const local = "MPI_LOCALRANKID" // hydra's
	switch {
	case env("PMI_RANK") == "":
		return Assignment{}, false, nil
	case env(local) == "" && env("SLURM_PROCID") != "":
		return Assignment{}, false, nil // srun speaks PMI too, and says more in words of its own
	}
	n := names{rank: "PMI_RANK", size: "PMI_SIZE"}
	if env(local) != "" {
		n.local = local
	}
	a, err := env.assignment(n)
	if err != nil {
		return Assignment{}, false, err
	}
	err = env.deriveOnOneHost(&a, "MPI_LOCALNRANKS")
	return a, err == nil, err
}
