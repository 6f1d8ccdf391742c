package bootstrap

// pmi is the interface of MPICH's launcher, hydra, and of its successors. They
// provide the addresses of the processes only over a socket (PMI_FD, PMI_PORT).
type pmi struct{}

func (pmi) name() string        { return "PMI" }
func (pmi) variables() []string { return []string{"PMI_RANK"} }

func (pmi) detect(env environment) (Assignment, bool, error) {
	const local = "MPI_LOCALRANKID" // hydra's
	switch {
	case env("PMI_RANK") == "":
		return Assignment{}, false, nil
	case env(local) == "" && env("SLURM_PROCID") != "":
		return Assignment{}, false, nil // srun sets PMI variables too, and its own say more
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
