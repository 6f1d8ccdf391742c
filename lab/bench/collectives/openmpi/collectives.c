/*
 * The same rounds as ServeCollectives makes, by MPI: what our collectives are
 * measured against. Every rank reads what to do from a pipe of its own, DIR/RANK,
 * and waits there, without using a processor, while others are measured:
 *
 *     OPERATION SIZE ROUNDS
 *
 * Each round is a barrier and then one operation. Its time is that of the rank for
 * which it took longest. Rank 0 prints the rounds' times in nanoseconds, one to a
 * line, and then the processor time that all ranks have used.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int rank, ranks;

/* The grid of Exchange: its width, this rank's neighbors, and their communicator. */
static int width = 1, neighbors[4], neighbor_count, counts[4], from[4], to[4];
static MPI_Comm grid;

static void make_grid(void)
{
	for (int w = 1; w * w <= ranks; w++)
		if (ranks % w == 0)
			width = w;
	int row = rank / width * width;
	int all[4] = {row + (rank + width - 1) % width, row + (rank + 1) % width, (rank + ranks - width) % ranks, (rank + width) % ranks};
	for (int i = 0; i < 4; i++) {
		int known = all[i] == rank;
		for (int k = 0; k < neighbor_count; k++)
			known |= neighbors[k] == all[i];
		if (!known)
			neighbors[neighbor_count++] = all[i];
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, neighbor_count, neighbors, MPI_UNWEIGHTED,
		neighbor_count, neighbors, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &grid);
}

static void exchange(const double *in, double *out, int count)
{
	for (int i = 0; i < neighbor_count; i++)
		counts[i] = count, to[i] = i * count;
	MPI_Neighbor_alltoallv(in, counts, from, MPI_DOUBLE, out, counts, to, MPI_DOUBLE, grid);
}

static void split(void)
{
	MPI_Comm row;
	MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &row);
	MPI_Comm_free(&row);
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* used is the processor time of this rank. */
static long long used(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

/* count is how many elements a buffer has. Alltoall's has them for each rank. */
static void operate(const char *op, const double *in, double *out, int count)
{
	if (!strcmp(op, "barrier"))
		MPI_Barrier(MPI_COMM_WORLD);
	else if (!strcmp(op, "broadcast"))
		MPI_Bcast(out, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	else if (!strcmp(op, "reduce"))
		MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	else if (!strcmp(op, "allreduce"))
		MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	else if (!strcmp(op, "alltoall"))
		MPI_Alltoall(in, count, MPI_DOUBLE, out, count, MPI_DOUBLE, MPI_COMM_WORLD);
	else if (!strcmp(op, "exchange"))
		exchange(in, out, count);
	else if (!strcmp(op, "split"))
		split();
	else
		MPI_Abort(MPI_COMM_WORLD, 2);
}

static double *buffer(size_t count)
{
	double *b = malloc(count * sizeof *b + 1);
	if (!b)
		MPI_Abort(MPI_COMM_WORLD, 3);
	for (size_t i = 0; i < count; i++)
		b[i] = rank + 1;
	return b;
}

static void block(const char *op, long size, int rounds)
{
	size_t count = size / sizeof(double);
	size_t whole = !strcmp(op, "alltoall") ? count * ranks : !strcmp(op, "exchange") ? count * 4 : count;
	double *in = buffer(whole), *out = buffer(whole);
	long long *took = calloc(rounds, sizeof *took), *longest = calloc(rounds, sizeof *longest);
	long long processor = -used(), all = 0;
	for (int i = 0; i < rounds; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		long long began = now();
		operate(op, in, out, count);
		took[i] = now() - began;
	}
	processor += used();
	MPI_Reduce(&processor, &all, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(took, longest, rounds, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		for (int i = 0; i < rounds; i++)
			printf("%lld\n", longest[i]);
		printf("%lld\n", all);
		fflush(stdout);
	}
	free(in), free(out), free(took), free(longest);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	make_grid();
	char path[4096], op[32];
	snprintf(path, sizeof path, "%s/%d", argc > 1 ? argv[1] : ".", rank);
	FILE *commands = fopen(path, "r");
	if (!commands)
		MPI_Abort(MPI_COMM_WORLD, 1);
	long size;
	int rounds;
	while (fscanf(commands, "%31s %ld %d", op, &size, &rounds) == 3)
		block(op, size, rounds);
	MPI_Finalize();
	return 0;
}
