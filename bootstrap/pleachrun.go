package bootstrap

import "math"

// pleachRun is `pleach run`. It opens all sockets before it starts a process, so the
// addresses are known and no port is lost to another program.
type pleachRun struct{}

func (pleachRun) name() string        { return "pleach run" }
func (pleachRun) variables() []string { return []string{"PLEACH_LISTEN_FD"} }

func (pleachRun) detect(env environment) (Assignment, bool, error) {
	if env("PLEACH_LISTEN_FD") == "" {
		return Assignment{}, false, nil
	}
	fd, err := env.number("PLEACH_LISTEN_FD", 3, math.MaxInt32)
	if err != nil {
		return Assignment{}, false, err
	}
	a, err := env.assignment(names{rank: "PLEACH_RANK", size: "PLEACH_SIZE"})
	if err != nil {
		return Assignment{}, false, err
	}
	a.LocalRank = int(a.Rank) // all run on one host
	a.listenFD = int(fd)
	return a, true, nil
}
