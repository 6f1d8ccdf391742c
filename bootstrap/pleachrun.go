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
	n := names{rank: "PLEACH_RANK", size: "PLEACH_SIZE", local: "PLEACH_RANK"} // if all run on one host
	if env("PLEACH_LOCAL_RANK") != "" {
		n.local = "PLEACH_LOCAL_RANK"
	}
	a, err := env.assignment(n)
	if err != nil {
		return Assignment{}, false, err
	}
	a.listenFD = int(fd)
	return a, true, nil
}
