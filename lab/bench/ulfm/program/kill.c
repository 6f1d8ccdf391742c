/*
 * What a killed rank costs the others by ULFM, the fault tolerance of MPI: what a
 * view change is measured against.
 *
 *     kill DIR VICTIM SECONDS
 *
 * All ranks make one Allreduce after the other. After a while VICTIM writes the time
 * to DIR/VICTIM and kills itself (SIGKILL), while the others wait for it in an
 * Allreduce. Each of the others does what an ULFM program does to go on: its
 * Allreduce returns an error, it revokes the communicator, so that every rank gets
 * an error, shrinks it to the living, and agrees with them. It writes to DIR/RANK
 * when it was done with each, and how many ranks are left:
 *
 *     ERROR SHRINK AGREE LEFT
 *
 * Times are nanoseconds of CLOCK_REALTIME. Then it waits to be killed: a job that
 * has lost a rank may take half a minute to end by itself. A rank does not outlive
 * mpirun, and lives no longer than SECONDS.
 */
#include <fcntl.h>
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* How long all ranks have made Allreduces when one is killed: they are connected. */
#define SETTLE 300000000LL

static const char *dir;
static int rank;

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* create makes DIR/RANK. It is empty until there is something to report. */
static int create(void)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%d", dir, rank);
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (file < 0) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return file;
}

static void must(int error, const char *what)
{
	if (error == MPI_SUCCESS)
		return;
	char text[MPI_MAX_ERROR_STRING];
	int length;
	MPI_Error_string(error, text, &length);
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* survive makes Allreduces until one fails, and goes on with those that are left. */
static void survive(void)
{
	double in = rank, out;
	int error, class, left, flag = 1;
	MPI_Comm living;
	while ((error = MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)) == MPI_SUCCESS)
		;
	long long failed = now();
	MPI_Error_class(error, &class);
	if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED)
		must(error, "allreduce");
	must(MPIX_Comm_revoke(MPI_COMM_WORLD), "revoke");
	must(MPIX_Comm_shrink(MPI_COMM_WORLD, &living), "shrink");
	long long shrunk = now();
	must(MPIX_Comm_agree(living, &flag), "agree");
	long long agreed = now();
	MPI_Comm_size(living, &left);
	dprintf(create(), "%lld %lld %lld %d\n", failed, shrunk, agreed, left);
	MPI_Barrier(living); /* others may need its help to agree */
	for (;;)
		pause();
}

/* die makes Allreduces until it is time, and then kills this process. */
static void die(void)
{
	double in = rank, out;
	int file = create(); /* now, so that it takes no time later */
	for (long long until = now() + SETTLE; now() < until;)
		must(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "allreduce");
	dprintf(file, "%lld\n", now());
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	dir = argv[1];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(atoi(argv[3]));
	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == atoi(argv[2]))
		die();
	survive();
}
