/* Calls makes every kind of call and checks every result, which must be the same whichever processes die at
 * whichever line. It prints "phase NAME" before each call, so that a launcher can kill there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pleach.h"

static int rank, size;
static const char *phase;

#define CHECK(condition)                                                                      \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "rank %d, %s: %s\n", rank, phase, #condition);        \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

static void make(pleach_comm *comm, const char *name, pleach_call *call) {
	phase = name;
	printf("phase %s\n", name);
	fflush(stdout);
	if (pleach_do(comm, call)) {
		fprintf(stderr, "rank %d, %s: code %d, %s\n", rank, name, call->error.code, call->error.text);
		exit(1);
	}
	CHECK(call->number > call->retired || !call->restore || call->retired == call->number);
}

/* Task t has t + 1 in every element of its input, and (100 t + i) in its part for task i. */
enum { elements = 3 };

static int restore(void *user, int task, pleach_input *input) {
	float x[elements];
	for (int i = 0; i < elements; i++) x[i] = (float)(task + 1);
	(void)user;
	return pleach_put(input, 0, x, elements);
}

static int restore_parts(void *user, int task, pleach_input *input) {
	(void)user;
	for (int i = 0; i < size; i++) {
		int32_t x = 100 * task + i;
		if (pleach_put(input, i, &x, 1)) return 1;
	}
	return 0;
}

static int restore_neighbors(void *user, int task, pleach_input *input) {
	(void)user;
	for (int d = 1; d < size; d += size - 2) {
		int32_t x = 100 * task + (task + d) % size;
		if (pleach_put(input, (task + d) % size, &x, 1)) return 1;
	}
	return 0;
}

static int larger(void *user, void *into, const void *left, const void *right, size_t count) {
	const float *l = left, *r = right;
	float *o = into;
	CHECK(user == &rank);
	for (size_t i = 0; i < count; i++) o[i] = l[i] > r[i] ? l[i] : r[i];
	return 0;
}

static int nothing(void *user) {
	(void)user;
	return 0;
}

int main(void) {
	pleach_comm *world;
	pleach_error error;
	phase = "world";
	if (pleach_world(NULL, &world, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	rank = pleach_rank(world), size = pleach_size(world);
	CHECK(strcmp(pleach_version(), PLEACH_VERSION) == 0);
	float in[elements] = {(float)rank + 1, (float)rank + 1, (float)rank + 1}, out[elements] = {0};
	float total = (float)(size * (size + 1)) / 2;
	int32_t for_task[64];
	pleach_part parts[64], neighbors[2];
	for (int i = 0; i < size; i++) for_task[i] = 100 * rank + i, parts[i] = (pleach_part){i, &for_task[i], 1};
	int left = (rank + size - 1) % size, right = (rank + 1) % size;
	neighbors[0] = parts[left], neighbors[1] = parts[right];

#define ELEMENTS .type = PLEACH_F32, .in = in, .count = elements, .restore = restore, .user = &rank
#define OUT .out = out, .out_count = elements
	pleach_call barrier = {.kind = PLEACH_BARRIER};
	make(world, "barrier", &barrier);

	pleach_call sum = {.kind = PLEACH_ALLREDUCE, .op = PLEACH_SUM, ELEMENTS, OUT};
	make(world, "allreduce", &sum);
	CHECK(sum.present && sum.result_count == elements && out[0] == total && out[2] == total);

	pleach_call most = {.kind = PLEACH_ALLREDUCE, .op = PLEACH_USER, .combine = larger, ELEMENTS, OUT};
	make(world, "operator", &most);
	CHECK(out[1] == (float)size);

	pleach_call to_root = {.kind = PLEACH_REDUCE, .op = PLEACH_MAX, .root = 1, ELEMENTS, OUT};
	make(world, "reduce", &to_root);
	CHECK(to_root.present ? out[0] == (float)size : rank != 1);

	pleach_call from_root = {.kind = PLEACH_BROADCAST, .root = 2, ELEMENTS};
	make(world, "broadcast", &from_root);
	CHECK(from_root.result_parts == 1 && from_root.result_count == elements);
	CHECK(((const float *)from_root.result[0].data)[1] == 3);
	pleach_result_free(&from_root);
	CHECK(!from_root.result);

	pleach_call scan = {.kind = PLEACH_SCAN, .op = PLEACH_SUM, ELEMENTS, OUT};
	make(world, "scan", &scan);
	CHECK(out[0] == (float)((rank + 1) * (rank + 2)) / 2);

	pleach_call exscan = {.kind = PLEACH_EXSCAN, .op = PLEACH_SUM, ELEMENTS, OUT};
	make(world, "exscan", &exscan);
	CHECK(rank == 0 ? !exscan.present : out[0] == (float)(rank * (rank + 1)) / 2);

	pleach_call gather = {.kind = PLEACH_GATHER, .root = 0, ELEMENTS};
	make(world, "gather", &gather);
	CHECK(gather.present || rank != 0);
	for (int i = 0; i < (int)gather.result_parts; i++)
		CHECK(gather.result[i].task == i && ((const float *)gather.result[i].data)[0] == (float)(i + 1));
	pleach_result_free(&gather);

	float everything[64 * elements];
	pleach_call allgather = {.kind = PLEACH_ALLGATHER, ELEMENTS, .out = everything, .out_count = 64 * elements};
	make(world, "allgather", &allgather);
	CHECK(allgather.result_count == (size_t)(elements * size));
	for (int i = 0; i < size; i++) CHECK(everything[elements * i + 2] == (float)(i + 1));

#define PARTS .type = PLEACH_I32, .parts = parts, .parts_count = (size_t)size, .restore = restore_parts
	int32_t mine = -1;
	pleach_call scatter = {.kind = PLEACH_SCATTER, .root = 3, PARTS, .out = &mine, .out_count = 1};
	make(world, "scatter", &scatter);
	CHECK(mine == 300 + rank);

	pleach_call reduce_scatter = {.kind = PLEACH_REDUCE_SCATTER, .op = PLEACH_MAX, PARTS, .out = &mine, .out_count = 1};
	make(world, "reduce_scatter", &reduce_scatter);
	CHECK(mine == 100 * (size - 1) + rank);

	pleach_call alltoall = {.kind = PLEACH_ALLTOALL, PARTS};
	make(world, "alltoall", &alltoall);
	for (int i = 0; i < size; i++) CHECK(*(const int32_t *)alltoall.result[i].data == 100 * i + rank);
	pleach_result_free(&alltoall);

	pleach_call exchange = {.kind = PLEACH_EXCHANGE, .type = PLEACH_I32, .parts = neighbors, .parts_count = 2,
		.restore = restore_neighbors};
	make(world, "exchange", &exchange);
	CHECK(exchange.result_parts == 2);
	for (int i = 0; i < 2; i++) {
		CHECK(exchange.result[i].task == left || exchange.result[i].task == right);
		CHECK(*(const int32_t *)exchange.result[i].data == 100 * exchange.result[i].task + rank);
	}
	pleach_result_free(&exchange);

	/* Two calls that run beside each other, in this order everywhere. */
	phase = "requests";
	printf("phase requests\n");
	fflush(stdout);
	float other[elements];
	pleach_call first = {.kind = PLEACH_ALLREDUCE, ELEMENTS, OUT};
	pleach_call second = {.kind = PLEACH_ALLREDUCE, .op = PLEACH_PROD, ELEMENTS, .out = other, .out_count = elements};
	pleach_request *requests[2];
	CHECK(!pleach_start(world, &first, &requests[0]) && !pleach_start(world, &second, &requests[1]));
	int code;
	while ((code = pleach_wait(requests[0], 1)) == PLEACH_PENDING) {}
	CHECK(code == PLEACH_OK && out[0] == total);
	float product = 1;
	for (int i = 1; i <= size; i++) product *= (float)i;
	CHECK(pleach_wait(requests[1], -1) == PLEACH_OK && other[0] == product);

	pleach_call agree = {.kind = PLEACH_AGREE, .value = 6u | 1u << rank};
	make(world, "agree", &agree);
	CHECK((agree.value & 6) == 6);

	pleach_call shrink = {.kind = PLEACH_SHRINK};
	make(world, "shrink", &shrink);
	CHECK(shrink.comm && pleach_world_rank(shrink.comm, pleach_rank(shrink.comm)) == rank);
	pleach_free(shrink.comm);

	int32_t tasks[64];
	int owned = pleach_tasks(world, tasks, 64);
	CHECK(owned >= 1 && owned <= size && pleach_owner(world, rank) == rank && pleach_owner(world, size) == -1);

	pleach_call once = {.kind = PLEACH_ONCE, .once = nothing};
	make(world, "once", &once);
	printf("all results are right\n");
	pleach_call end = {.kind = PLEACH_FINALIZE};
	make(world, "finalize", &end);
	CHECK(end.retired == end.number);
	CHECK(pleach_do(world, &barrier) == PLEACH_CLOSED);
	return pleach_free(world);
}
