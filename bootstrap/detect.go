package bootstrap

// launcher recognizes one launcher by its environment variables.
type launcher interface {
	name() string
	// variables are the variables by which the launcher is known: all must be set.
	variables() []string
	// detect reports whether the launcher started this process. An error means that
	// it did, but that its variables are invalid.
	detect(env environment) (Assignment, bool, error)
}

// launchers are tried in this order. Variables set by hand come first, then the
// innermost launcher: users start torchrun and mpirun with srun, whose variables
// are inherited and number the wrong processes.
func launchers() []launcher {
	return []launcher{pleachRun{}, static{}, torchrun{}, openMPI{}, pmi{}, slurm{}, kubernetes{}}
}

// Detect recognizes the launcher of this process and returns its assignment.
// Programs pass [os.Getenv].
//
// Detect returns a [*NotFoundError] if it recognizes no launcher, and a
// [*VariableError] if a variable is invalid. Some launchers do not provide the
// addresses of the processes; then Addresses is nil, and [Assignment.Check] says
// what to do.
func Detect(env func(string) string) (Assignment, error) {
	notFound := &NotFoundError{}
	for _, l := range launchers() {
		a, ok, err := l.detect(env)
		switch {
		case err != nil:
			return Assignment{}, err
		case ok:
			a.Launcher = l.name()
			return a, nil
		}
		notFound.add(l, env)
	}
	return Assignment{}, notFound
}
