package bootstrap

// launcher is one way in which processes are started. It reads the environment
// and does nothing else.
type launcher interface {
	name() string
	// variables are the variables by which the launcher is known: all must be set.
	variables() []string
	// detect reports whether the launcher started this process. An error says
	// that it did, but that its variables make no sense.
	detect(env environment) (Assignment, bool, error)
}

// launchers are tried in this order. What was written by hand wins. Then the
// innermost comes first: people start torchrun and mpirun by srun, and the
// variables of srun, which they inherit, number the wrong processes.
func launchers() []launcher {
	return []launcher{pleachRun{}, static{}, torchrun{}, openMPI{}, pmi{}, slurm{}, kubernetes{}}
}

// Detect finds out how this process was started, and so who it is. Programs
// give it [os.Getenv].
//
// Its errors are a [*NotFoundError], which says what was looked for, and a
// [*VariableError], which says which variable is wrong. Some launchers do not
// tell where the others are; then Addresses is nil, and [Place.Check] says what
// to do.
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
