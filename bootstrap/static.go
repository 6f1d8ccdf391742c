package bootstrap

import "strconv"

// static is an assignment by hand: a rank and all addresses, or a rendezvous and the size.
type static struct{}

func (static) name() string        { return "static" }
func (static) variables() []string { return []string{"PLEACH_RANK", "PLEACH_ADDRESSES"} }

func (static) detect(env environment) (Assignment, bool, error) {
	meets := env("PLEACH_RENDEZVOUS") != "" && env("PLEACH_SIZE") != ""
	if env("PLEACH_RANK") == "" || env("PLEACH_ADDRESSES") == "" && env("PLEACH_ADDRESS_FILE") == "" && !meets {
		return Assignment{}, false, nil
	}
	env, err := env.sized()
	if err != nil {
		return Assignment{}, false, err
	}
	a, err := env.assignment(names{rank: "PLEACH_RANK", size: "PLEACH_SIZE"})
	return a, err == nil, err
}

// sized adds PLEACH_SIZE if it is not set: it is the number of addresses.
func (env environment) sized() (environment, error) {
	if env("PLEACH_SIZE") != "" {
		return env, nil
	}
	list, _, err := env.addresses()
	if err != nil || list == nil {
		return env, err
	}
	return func(name string) string {
		if name == "PLEACH_SIZE" {
			return strconv.Itoa(len(list))
		}
		return env(name)
	}, nil
}
