package bootstrap

// torchrun is PyTorch's launcher. It tells where rank 0's host is, but nobody
// else's. RANK alone could be anybody's variable, so all three must be there.
type torchrun struct{}

func (torchrun) name() string       { return "torchrun" }
func (torchrun) looksFor() []string { return []string{"RANK", "WORLD_SIZE", "LOCAL_RANK"} }

func (l torchrun) detect(env environment) (Place, bool, error) {
	for _, name := range l.looksFor() {
		if env(name) == "" {
			return Place{}, false, nil
		}
	}
	place, err := env.place(names{rank: "RANK", size: "WORLD_SIZE", local: "LOCAL_RANK"})
	if err != nil {
		return Place{}, false, err
	}
	place.group("torchrun", env("TORCHELASTIC_RUN_ID"))
	err = env.deriveOnOneHost(&place, "LOCAL_WORLD_SIZE")
	return place, err == nil, err
}

// deriveOnOneHost fills in the addresses if none are given and the variable says
// that all processes run on this host.
func (env environment) deriveOnOneHost(place *Place, localSize string) error {
	if place.Addresses != nil || env(localSize) == "" {
		return nil
	}
	n, err := env.number(localSize, 1, int64(place.Size))
	if err != nil || n != int64(place.Size) {
		return err
	}
	place.Addresses, err = env.onOneHost(place.Size)
	return err
}
