/* Trouble does what programs do wrong, or what happens to them. Its argument says which. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pleach.h"

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);           \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

static pleach_comm *world;
static volatile sig_atomic_t signals;

static void count(int number) {
	(void)number;
	signals++;
}

static int contains(const pleach_error *e, int rank) {
	for (int i = 0; i < e->ranks_count; i++)
		if (e->ranks[i] == rank) return 1;
	return 0;
}

static void end(void) {
	pleach_call finalize = {.kind = PLEACH_FINALIZE};
	CHECK(!pleach_do(world, &finalize));
}

/* A child of fork gets an error from every call, at once. */
static void in_fork(void) {
	pid_t child = fork();
	if (child == 0) {
		pleach_call barrier = {.kind = PLEACH_BARRIER};
		CHECK(pleach_do(world, &barrier) == PLEACH_FORKED && strstr(barrier.error.text, "fork"));
		pleach_comm *second;
		pleach_error error;
		CHECK(pleach_world(NULL, &second, &error) == PLEACH_FORKED);
		CHECK(pleach_owner(world, 0) == -1 && pleach_interrupt(world) == PLEACH_FORKED);
		_exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	end();
}

/* stay_away makes no call until rank 0 has ended. */
static void stay_away(void) {
	int32_t failed;
	while (!pleach_failed(world, &failed, 1)) usleep(1000);
	_exit(0);
}

/* Rank 1 does not come: the others learn which rank is missing, and can cancel. */
static void late(void) {
	if (pleach_rank(world) == 1) stay_away();
	pleach_call barrier = {.kind = PLEACH_BARRIER, .timeout_ms = 100};
	CHECK(pleach_do(world, &barrier) == PLEACH_TIMED_OUT && contains(&barrier.error, 1));
	pleach_call other = {.kind = PLEACH_BARRIER};
	pleach_request *request;
	CHECK(!pleach_start(world, &other, &request));
	CHECK(pleach_wait(request, 20) == PLEACH_PENDING);
	pleach_cancel(request);
	CHECK(pleach_wait(request, -1) == PLEACH_CANCELED);
	_exit(0);
}

static void *interrupt(void *unused) {
	(void)unused;
	usleep(50000);
	pleach_interrupt(world);
	return NULL;
}

/* Signals are the program's, also during a call, which goes on. Another thread interrupts it. */
static void signaled(void) {
	if (pleach_rank(world) == 1) stay_away();
	struct sigaction action = {.sa_handler = count, .sa_flags = SA_ONSTACK};
	struct sigaction mine;
	CHECK(!sigaction(SIGINT, &action, NULL) && !sigaction(SIGALRM, &action, NULL));
	CHECK(!sigaction(SIGTERM, NULL, &mine) && mine.sa_handler == SIG_DFL);
	raise(SIGINT);
	alarm(1);
	pleach_call barrier = {.kind = PLEACH_BARRIER, .timeout_ms = 1500};
	CHECK(pleach_do(world, &barrier) == PLEACH_TIMED_OUT && signals == 2);
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, interrupt, NULL));
	pleach_call canceled = {.kind = PLEACH_BARRIER};
	CHECK(pleach_do(world, &canceled) == PLEACH_CANCELED);
	pthread_join(thread, NULL);
	printf("interrupted\n");
	fflush(stdout);
	raise(SIGTERM); /* ends this process as it would without the library */
}

/* Ranks 0 and 1 call different things, and both learn which. */
static void mismatch(void) {
	double x = 1, y;
	pleach_call barrier = {.kind = PLEACH_BARRIER};
	pleach_call sum = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .in = &x, .count = 1, .out = &y, .out_count = 1};
	pleach_call *call = pleach_rank(world) ? &sum : &barrier;
	CHECK(pleach_do(world, call) == PLEACH_MISMATCH && contains(&call->error, 0) && contains(&call->error, 1));
	CHECK(strstr(call->error.text, "Barrier") && strstr(call->error.text, "Allreduce"));
	_exit(0);
}

/* Report mode: rank 1 dies; the others revoke, shrink and go on. */
static void report(void) {
	double x = 1, y = 0;
	pleach_call sum = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .in = &x, .count = 1, .out = &y, .out_count = 1,
		.mode = PLEACH_REPORT};
	if (pleach_rank(world) == 1) _exit(0);
	int code = pleach_do(world, &sum);
	CHECK(code == PLEACH_FAILED ? contains(&sum.error, 1) : code == PLEACH_REVOKED);
	int32_t failed[2];
	CHECK(code != PLEACH_FAILED || (pleach_failed(world, failed, 2) == 1 && failed[0] == 1));
	pleach_revoke(world);
	pleach_call shrink = {.kind = PLEACH_SHRINK};
	CHECK(!pleach_do(world, &shrink) && pleach_size(shrink.comm) == 2);
	CHECK(!pleach_do(shrink.comm, &sum) && y == 2);
	pleach_free(shrink.comm);
	end();
}

/* A call that needs an input and has no restore says so on the task's new owner, and that on the others. */
static void unrestored(void) {
	double x = 1, y = 0;
	pleach_call sum = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .in = &x, .count = 1, .out = &y, .out_count = 1};
	if (pleach_rank(world) == 1) _exit(0);
	int code = pleach_do(world, &sum);
	CHECK((code == PLEACH_NOT_RESTORED || code == PLEACH_ABORTED) && sum.error.ranks_count == 1);
	_exit(0);
}

/* Wrong arguments are errors, and the calls are not made. */
static void arguments(void) {
	CHECK(pleach_rank(NULL) == -1 && pleach_size(NULL) == -1 && pleach_owner(NULL, 0) == -1); /* case 104 */
	CHECK(pleach_do(world, NULL) == PLEACH_INVALID && pleach_wait(NULL, 0) == PLEACH_INVALID && pleach_revoke(NULL) == PLEACH_INVALID);
	char bytes[17];
	pleach_call wrong[] = {
		{.kind = 99},
		{.kind = PLEACH_ALLREDUCE, .type = 99},
		{.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .op = PLEACH_AND},
		{.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .op = PLEACH_USER},
		{.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .in = bytes + ((uintptr_t)bytes % 2 ? 0 : 1), .count = 1},
		{.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .in = NULL, .count = 1},
		{.kind = PLEACH_ONCE},
		{.kind = PLEACH_SPLIT, .in = bytes, .count = 9},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		CHECK(pleach_do(world, &wrong[i]) == PLEACH_INVALID && wrong[i].error.text[0]);
	pleach_request *request;
	pleach_call shrink = {.kind = PLEACH_SHRINK};
	CHECK(pleach_start(world, &shrink, &request) == PLEACH_INVALID && pleach_release(world) == PLEACH_INVALID);
	end();
}

static int broken(void *user, void *into, const void *left, const void *right, size_t count) {
	(void)user, (void)into, (void)left, (void)right, (void)count;
	if (pleach_rank(world) != 0) return 0;
	pleach_reason("the operator is broken");
	return 7;
}

/* An operator that fails on one process ends the call on all, with its text (case 86). */
static void operator_fails(void) {
	double in[4] = {0}, out[4];
	pleach_call sum = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .op = PLEACH_USER, .combine = broken,
		.in = in, .count = 4, .out = out, .out_count = 4};
	int code = pleach_do(world, &sum);
	CHECK(code == (pleach_rank(world) == 0 ? PLEACH_OPERATOR : PLEACH_ABORTED));
	CHECK(contains(&sum.error, 0) && strstr(sum.error.text, "the operator is broken"));
	end();
}

int main(int argc, char **argv) {
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"fork", in_fork}, {"late", late}, {"signals", signaled}, {"mismatch", mismatch}, {"report", report},
		{"unrestored", unrestored}, {"arguments", arguments}, {"operator", operator_fails}};
	pleach_error error;
	if (pleach_world(NULL, &world, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return pleach_free(world);
		}
	return 2;
}
