package bootstrap

// openMPI is mpirun of Open MPI, and prterun, which is below it since version 5.
// They provide the addresses of the processes only through PMIx.
type openMPI struct{}

func (openMPI) name() string { return "Open MPI" }
func (openMPI) variables() []string {
	return []string{"OMPI_COMM_WORLD_RANK"}
}

func (openMPI) detect(env environment) (Assignment, bool, error) {
	if env("OMPI_COMM_WORLD_RANK") == "" {
		return Assignment{}, false, nil
	}
	a, err := env.assignment(names{
		rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", local: "OMPI_COMM_WORLD_LOCAL_RANK",
	})
	if err != nil {
		return Assignment{}, false, err
	}
	a.group("ompi", env("PMIX_NAMESPACE"))
	err = env.deriveOnOneHost(&a, "OMPI_COMM_WORLD_LOCAL_SIZE")
	return a, err == nil, err
}
