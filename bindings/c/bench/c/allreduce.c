/* Measures Allreduce of doubles from C: see bindings/python/bench.py. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pleach.h>

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	if (argc < 3) return 2;
	size_t n = (size_t)atol(argv[1]) / sizeof(double);
	int rounds = atoi(argv[2]);
	pleach_comm *world;
	pleach_error error;
	if (pleach_world(NULL, &world, &error)) return 1;
	double *in = calloc(n, sizeof *in), *out = calloc(n, sizeof *out), *took = calloc((size_t)rounds, sizeof *took);
	for (int i = -rounds / 4; i < rounds; i++) {
		double began = now();
		pleach_call call = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .in = in, .count = n, .out = out, .out_count = n};
		if (pleach_do(world, &call)) return 1;
		if (i >= 0) took[i] = now() - began;
	}
	qsort(took, (size_t)rounds, sizeof *took, compare);
	if (pleach_rank(world) == 0) printf("p50 %f\n", took[rounds / 2]);
	pleach_call end = {.kind = PLEACH_FINALIZE};
	return pleach_do(world, &end);
}
