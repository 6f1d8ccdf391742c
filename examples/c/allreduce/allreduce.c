/*
 * Allreduce estimates π with as many processes as it is started with, and ends with the same digits
 * although some of them are killed:
 *
 *	make bindings
 *	gcc -o allreduce examples/c/allreduce/allreduce.c $(PKG_CONFIG_PATH=bin/libpleach pkg-config --cflags --libs libpleach)
 *	pleach run -n 4 --kill '2@/step 50/' ./allreduce
 *
 * Each task draws points from a seed of its own, so that a survivor that takes over the task of a dead process
 * can draw them again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <pleach.h>

enum { steps = 100, points = 20000 };

/* draw counts the points of a task in a step that fall into the circle. */
static int64_t draw(int task, int step) {
	uint64_t x = ((uint64_t)task << 32 | (uint64_t)step) + 1;
	double coordinate[2];
	int64_t inside = 0;
	for (int i = 0; i < 2 * points; i++) { /* splitmix64 */
		uint64_t z = (x += 0x9e3779b97f4a7c15);
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		coordinate[i % 2] = (double)((z ^ z >> 31) >> 11) * 0x1p-53;
		if (i % 2) inside += coordinate[0] * coordinate[0] + coordinate[1] * coordinate[1] < 1;
	}
	return inside;
}

/* restore gives what a process that has died would have given. The step is passed by value: a pointer to the
 * loop's variable would show a later step. */
static int restore(void *user, int task, pleach_input *input) {
	int64_t hits = draw(task, (int)(intptr_t)user);
	return pleach_put(input, task, &hits, 1);
}

static int print_result(void *user) {
	printf("result: %" PRId64 " hits\n", *(int64_t *)user);
	return fflush(stdout);
}

static void check(int code, const pleach_error *error) {
	if (code) {
		fprintf(stderr, "%s\n", error->text);
		exit(1);
	}
}

int main(void) {
	pleach_comm *world;
	pleach_error error;
	check(pleach_world(NULL, &world, &error), &error);
	int rank = pleach_rank(world);
	int64_t inside = 0;
	for (int step = 0; step < steps; step++) {
		int64_t mine = draw(rank, step), all;
		pleach_call sum = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_I64, .op = PLEACH_SUM,
			.in = &mine, .count = 1, .out = &all, .out_count = 1,
			.restore = restore, .user = (void *)(intptr_t)step};
		check(pleach_do(world, &sum), &sum.error);
		inside += all;
		if (step % 10 == 0) {
			printf("step %d: π ≈ %.5f\n", step, 4.0 * (double)inside / points / (step + 1) / pleach_size(world));
			fflush(stdout);
		}
	}
	pleach_call once = {.kind = PLEACH_ONCE, .once = print_result, .user = &inside};
	check(pleach_do(world, &once), &once.error);
	pleach_call end = {.kind = PLEACH_FINALIZE};
	check(pleach_do(world, &end), &end.error);
	return pleach_free(world);
}
