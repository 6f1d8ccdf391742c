package bootstrap

import (
	"fmt"
	"strconv"

	"github.com/pleach-go/pleach/protocol"
)

// MaxSize is the largest group that Detect accepts: ten times the processes of
// the largest machines, and small enough for a list of addresses.
const MaxSize = 1 << 20

// environment reads variables. An empty variable counts as unset, because shells
// have no easy way to unset a variable for one command.
type environment func(string) string

// number reads a variable that must be a number from least to most.
func (env environment) number(name string, least, most int64) (int64, error) {
	value := env(name)
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, &VariableError{Name: name, Value: value, Problem: fmt.Sprintf("it must be a number from %d to %d",
			least, most)}
	}
	return n, nil
}

// names are a launcher's variables for what all launchers provide. Local may be "".
type names struct{ rank, size, local string }

// assignment reads the launcher's variables, and the addresses and the group that
// are set by hand.
func (env environment) assignment(n names) (Assignment, error) {
	size, err := env.number(n.size, 1, MaxSize)
	if err != nil {
		return Assignment{}, err
	}
	rank, err := env.rank(n, size)
	if err != nil {
		return Assignment{}, err
	}
	var local int64
	if n.local != "" {
		local, err = env.number(n.local, 0, size-1)
		if err != nil {
			return Assignment{}, err
		}
	}
	addresses, variable, err := env.addresses()
	if err != nil {
		return Assignment{}, err
	}
	if addresses != nil && int64(len(addresses)) != size {
		return Assignment{}, &VariableError{
			Name: variable, Value: env(variable),
			Problem: fmt.Sprintf("%d addresses, but %s=%d", len(addresses), n.size, size),
		}
	}
	secret, err := env.secret()
	if err != nil {
		return Assignment{}, err
	}
	rendezvous, err := env.rendezvous(addresses)
	if err != nil {
		return Assignment{}, err
	}
	return Assignment{
		Rank: protocol.Rank(rank), Size: protocol.Rank(size), LocalRank: int(local),
		Addresses: addresses, Rendezvous: rendezvous, Group: env("PLEACH_GROUP"), Secret: secret,
		Respawned: env("PLEACH_REPLACEMENT") != "",
	}, nil
}

// minSecret is the length of the shortest secret that pleach.Config takes, in bytes.
const minSecret = 16

// secret reads the secret of the job. Its error does not repeat it.
func (env environment) secret() ([]byte, error) {
	secret := env("PLEACH_SECRET")
	switch {
	case secret == "":
		return nil, nil
	case len(secret) < minSecret:
		return nil, &VariableError{
			Name: "PLEACH_SECRET", Value: "…",
			Problem: fmt.Sprintf("it must have at least %d random bytes", minSecret),
		}
	}
	return []byte(secret), nil
}

// rank reads the rank. Its error names both variables if they contradict each other:
// either may be wrong.
func (env environment) rank(n names, size int64) (int64, error) {
	rank, err := env.number(n.rank, 0, MaxSize)
	if err == nil && rank >= size {
		err = &VariableError{Name: n.rank, Value: env(n.rank), Problem: fmt.Sprintf("it must be less than %s=%d",
			n.size, size)}
	}
	return rank, err
}

// group sets the name of the group, unless it is set by hand: the launcher's name and
// its job id.
func (a *Assignment) group(launcher, job string) {
	if a.Group == "" && job != "" {
		a.Group = launcher + "-" + job
	}
}
