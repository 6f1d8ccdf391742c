package bootstrap

// openMPI is mpirun of Open MPI, and prterun, which is below it since version 5.
// Where the others are, they tell by PMIx only.
type openMPI struct{}

func (openMPI) name() string { return "Open MPI" }
func (openMPI) looksFor() []string {
	return []string{"OMPI_COMM_WORLD_RANK"}
}

func (openMPI) detect(env environment) (Place, bool, error) {
	if env("OMPI_COMM_WORLD_RANK") == "" {
		return Place{}, false, nil
	}
	place, err := env.place(names{
		rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", local: "OMPI_COMM_WORLD_LOCAL_RANK",
	})
	if err != nil {
		return Place{}, false, err
	}
	place.group("ompi", env("PMIX_NAMESPACE"))
	err = env.deriveOnOneHost(&place, "OMPI_COMM_WORLD_LOCAL_SIZE")
	return place, err == nil, err
}
