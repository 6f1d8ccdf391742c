package bootstrap

// torchrun is PyTorch's launcher. It provides the host of rank 0 only, where
// the processes meet. RANK alone
// could belong to another program, so all three variables must be set.
type torchrun struct{}

func (torchrun) name() string        { return "torchrun" }
func (torchrun) variables() []string { return []string{"RANK", "WORLD_SIZE", "LOCAL_RANK"} }

func (l torchrun) detect(env environment) (Assignment, bool, error) {
	for _, name := range l.variables() {
		if env(name) == "" {
			return Assignment{}, false, nil
		}
	}
	a, err := env.assignment(names{rank: "RANK", size: "WORLD_SIZE", local: "LOCAL_RANK"})
	if err != nil {
		return Assignment{}, false, err
	}
	a.group("torchrun", env("TORCHELASTIC_RUN_ID"))
	if err = env.deriveOnOneHost(&a, "LOCAL_WORLD_SIZE"); err != nil {
		return a, false, err
	}
	if master := env("MASTER_ADDR"); master != "" && a.Addresses == nil && a.Rendezvous == "" {
		port, err := env.port(0) // MASTER_PORT is torchrun's own
		if err != nil {
			return a, false, err
		}
		a.Rendezvous = address(master, port)
	}
	return a, true, nil
}

// deriveOnOneHost derives the addresses if none are set and the variable says that
// all processes run on this host.
func (env environment) deriveOnOneHost(a *Assignment, localSize string) error {
	if a.Addresses != nil || a.Rendezvous != "" || env(localSize) == "" {
		return nil
	}
	n, err := env.number(localSize, 1, int64(a.Size))
	if err != nil || n != int64(a.Size) {
		return err
	}
	a.Addresses, err = env.onOneHost(a.Group, a.Size)
	return err
}
