package bootstrap

import "math"

// pleachRun is `pleach run`, which opens all sockets before it starts anybody:
// the addresses are known, and no port can be lost to another program.
type pleachRun struct{}

func (pleachRun) name() string       { return "pleach run" }
func (pleachRun) looksFor() []string { return []string{"PLEACH_LISTEN_FD"} }

func (pleachRun) detect(env environment) (Place, bool, error) {
	if env("PLEACH_LISTEN_FD") == "" {
		return Place{}, false, nil
	}
	fd, err := env.number("PLEACH_LISTEN_FD", 3, math.MaxInt32)
	if err != nil {
		return Place{}, false, err
	}
	place, err := env.place(names{rank: "PLEACH_RANK", size: "PLEACH_SIZE"})
	if err != nil {
		return Place{}, false, err
	}
	place.LocalRank = int(place.Rank) // all run on one host
	place.listenFD = int(fd)
	return place, true, nil
}
