// Package bootstrap finds the rank of a process and the addresses of all members.
//
// Every launcher sets environment variables of its own. [Detect] knows those of
// `pleach run`, torchrun, Open MPI (and PRRTE), PMI (MPICH's hydra), Slurm and
// Kubernetes Indexed Jobs. It returns an [Assignment]: the rank, the size and, where
// they can be derived, the addresses of all members.
//
//	a, err := bootstrap.Detect(os.Getenv)
//	if err != nil { … }
//	if a, err = a.Meet(ctx); err != nil { … }
//	listener, err := a.Listener()
//
// # Variables of Pleach
//
// These replace a launcher, or add what a launcher leaves out:
//
//	PLEACH_RANK          this process's rank
//	PLEACH_LOCAL_RANK    set by `pleach run`: the process's number among those of its host
//	PLEACH_SIZE          the number of members
//	PLEACH_ADDRESSES     host:port of every member in order of rank, separated by commas
//	PLEACH_ADDRESS_FILE  a file with the addresses, one per line, if they are many
//	PLEACH_RENDEZVOUS    host:port of rank 0, where all learn the addresses; any free port
//	PLEACH_PORT          the first port of derived addresses; 27600 if not set
//	PLEACH_GROUP         the name of the group, so that two jobs never mix
//	PLEACH_SECRET        the secret of the job, at least 16 random bytes; `pleach run` makes one
//	PLEACH_SUBDOMAIN     in Kubernetes: the name of the headless service
//	PLEACH_LISTEN_FD     set by `pleach run`: an inherited listening socket
//	PLEACH_REPLACEMENT   not empty: this process replaces a dead one of its rank
//
// PLEACH_RANK together with addresses takes precedence over a launcher's variables.
// Given addresses and a given group take precedence over derived ones. All variables
// but PLEACH_RANK, PLEACH_LOCAL_RANK, PLEACH_LISTEN_FD and PLEACH_REPLACEMENT must be the same in all processes.
package bootstrap
