// Package bootstrap tells a process who it is and where the others are.
//
// Every launcher says it in environment variables of its own. [Detect] knows
// those of `pleach run`, torchrun, Open MPI (and PRRTE), PMI (MPICH's hydra),
// Slurm and Kubernetes Indexed Jobs, and returns a [Place]: rank, size and, where
// they can be known, the addresses of all members.
//
//	place, err := bootstrap.Detect(os.Getenv)
//	if err != nil { … }
//	if err := place.Check(); err != nil { … }
//	listener, err := place.Listener()
//
// # Variables of Pleach
//
// These say it without a launcher, or add what a launcher leaves out:
//
//	PLEACH_RANK          this process's rank
//	PLEACH_SIZE          number of members
//	PLEACH_ADDRESSES     host:port of every member in order of rank, with commas between
//	PLEACH_ADDRESS_FILE  a file with the addresses, one on a line, where they are many
//	PLEACH_PORT          the port from which on addresses are derived, 27600 if not set
//	PLEACH_GROUP         name of the group, so that two jobs never mix
//	PLEACH_SUBDOMAIN     in Kubernetes: name of the headless service
//	PLEACH_LISTEN_FD     set by `pleach run`: an inherited socket that listens
//
// PLEACH_RANK together with addresses always wins over a launcher's variables,
// and addresses and a group that are given win over derived ones. The variables
// must be the same in all processes, but for rank and PLEACH_LISTEN_FD.
package bootstrap
