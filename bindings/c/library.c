/* The functions of pleach.h. Each looks whether this process is a fork before it enters Go: the runtime's
 * threads are not in a child, so that a call would wait for ever. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

#include "_cgo_export.h"

static int forked;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

/* fork_error is what every function returns in a child. error may be NULL. */
static int fork_error(pleach_error *error) {
	if (error) {
		error->code = PLEACH_FORKED;
		error->ranks_count = 0;
		strcpy(error->text, "this process is a fork of the one that loaded libpleach, which it cannot use: start processes by exec, or fork before loading it");
	}
	return PLEACH_FORKED;
}

/* null_error is what a function returns that was given NULL for a communicator, a call or a request. */
static int null_error(pleach_error *error) {
	if (error) {
		error->code = PLEACH_INVALID;
		error->ranks_count = 0;
		strcpy(error->text, "pleach: a communicator, call or request is NULL: pleach_world has failed, or it was freed");
	}
	return PLEACH_INVALID;
}

/* new_comm is called by Go. */
pleach_comm *pleachgo_new_comm(uintptr_t handle, int rank, int size, int replacement) {
	pleach_comm *comm = malloc(sizeof *comm);
	*comm = (pleach_comm){handle, rank, size, replacement};
	return comm;
}

const char *pleach_version(void) { return PLEACH_VERSION; }

int pleach_world(const pleach_config *config, pleach_comm **world, pleach_error *error) {
	static const pleach_config defaults;
	if (forked) return fork_error(error);
	if (!world) return null_error(error);
	*world = NULL;
	return pleachgo_world((pleach_config *)(config ? config : &defaults), world, error);
}

int pleach_close(pleach_comm *world) { return !world ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_close(world->handle); }

int pleach_abort(pleach_comm *world) { return !world ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_abort(world->handle); }

int pleach_free(pleach_comm *comm) {
	if (!comm) return PLEACH_OK;
	int code = forked ? PLEACH_FORKED : pleachgo_free(comm->handle);
	free(comm);
	return code;
}

int pleach_do(pleach_comm *comm, pleach_call *call) {
	if (!comm || !call) return null_error(call ? &call->error : NULL);
	return forked ? fork_error(&call->error) : pleachgo_do(comm->handle, call);
}

int pleach_start(pleach_comm *comm, pleach_call *call, pleach_request **request) {
	if (!comm || !call || !request) return null_error(call ? &call->error : NULL);
	if (forked) return fork_error(&call->error);
	*request = malloc(sizeof **request);
	int code = pleachgo_start(comm->handle, call, &(*request)->handle);
	if (code) {
		free(*request);
		*request = NULL;
	}
	return code;
}

int pleach_wait(pleach_request *request, int timeout_ms) {
	if (!request) return PLEACH_INVALID;
	int code = forked ? PLEACH_FORKED : pleachgo_wait(request->handle, timeout_ms);
	if (code != PLEACH_PENDING) free(request);
	return code;
}

int pleach_cancel(pleach_request *request) { return !request ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_cancel(request->handle); }

int pleach_interrupt(pleach_comm *world) { return !world ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_interrupt(world->handle); }

int pleach_result_free(pleach_call *call) {
	if (forked) return PLEACH_FORKED;
	if (!call) return PLEACH_INVALID;
	if (call->memory) pleachgo_result_free(call->memory);
	call->memory = 0, call->result = NULL, call->result_parts = 0;
	return PLEACH_OK;
}

int pleach_put(pleach_input *input, int task, const void *data, size_t count) {
	return !input ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_put(input->handle, task, (void *)data, count);
}

_Thread_local char reason_of_failure[PLEACH_TEXT];

int pleach_reason(const char *text) {
	strncpy(reason_of_failure, text ? text : "", PLEACH_TEXT - 1);
	return PLEACH_OK;
}

int pleach_rank(const pleach_comm *comm) { return comm ? comm->rank : -1; }

int pleach_size(const pleach_comm *comm) { return comm ? comm->size : -1; }

int pleach_replacement(const pleach_comm *world) { return world ? world->replacement : -1; }

int pleach_owner(const pleach_comm *comm, int task) { return !comm || forked ? -1 : pleachgo_owner(comm->handle, task); }

int pleach_world_rank(const pleach_comm *comm, int rank) { return !comm || forked ? -1 : pleachgo_world_rank(comm->handle, rank); }

int pleach_tasks(const pleach_comm *comm, int32_t *tasks, int most) {
	return !comm || forked ? -1 : pleachgo_tasks(comm->handle, tasks, most);
}

int pleach_failed(const pleach_comm *comm, int32_t *ranks, int most) {
	return !comm || forked ? -1 : pleachgo_failed(comm->handle, ranks, most, 0);
}

int pleach_ack_failed(pleach_comm *comm, int32_t *ranks, int most) {
	return !comm || forked ? -1 : pleachgo_failed(comm->handle, ranks, most, 1);
}

int pleach_fencing_token(const pleach_comm *comm, int task, uint64_t *token) {
	return !comm || forked ? -1 : pleachgo_fencing_token(comm->handle, task, token);
}

int pleach_revoke(pleach_comm *comm) { return !comm ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_revoke(comm->handle); }

int pleach_hold(pleach_comm *comm) { return !comm ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_hold(comm->handle); }

int pleach_release(pleach_comm *comm) { return !comm ? PLEACH_INVALID : forked ? PLEACH_FORKED : pleachgo_release(comm->handle); }
