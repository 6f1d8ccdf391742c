/*
 * pleach.h: jobs of cooperating processes that finish although some of them die, for C.
 *
 * A job's processes make the same calls in the same order, as with MPI. When one dies, a
 * survivor takes over its task, and the others get the result that a run without failures
 * gives. docs/guide/jobs.md explains the words: world, rank, task, restore, takeover.
 *
 *	pleach_comm *world;
 *	pleach_error error;
 *	if (pleach_world(NULL, &world, &error)) { ... error.text ... }
 *	pleach_call sum = {.kind = PLEACH_ALLREDUCE, .type = PLEACH_F64, .op = PLEACH_SUM,
 *	                   .in = mine, .count = n, .out = total, .out_count = n,
 *	                   .restore = input_of_task, .user = &step};
 *	if (pleach_do(world, &sum)) { ... sum.error.text ... }
 *	pleach_call end = {.kind = PLEACH_FINALIZE};
 *	pleach_do(world, &end);
 *	pleach_free(world);
 *
 * Threads: any thread may call any function. The order of calls in a communicator counts,
 * so threads that share one must agree on it.
 *
 * Signals: the library handles none but those that the Go runtime needs (SIGURG, and
 * SIGSEGV, SIGBUS and SIGFPE of its own code). SIGINT, SIGTERM and the rest stay the
 * program's. Handlers must be installed with SA_ONSTACK.
 *
 * fork: a child cannot use the library: calls return PLEACH_FORKED there, and questions -1. exec
 * is fine. A process that exits without PLEACH_FINALIZE counts as dead.
 *
 * Other libraries: a process has room for one library with a runtime of Go. With a second one it may crash
 * (golang/go#18976). Do not unload the library. It needs the GNU C library (golang/go#54805).
 */
#ifndef PLEACH_H
#define PLEACH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header, and of the library if pleach_version returns the same. */
#define PLEACH_VERSION "0.1.0.dev0"

/* pleach_code is what functions return. All but PLEACH_OK and PLEACH_PENDING are errors. */
typedef enum {
	PLEACH_OK = 0,
	PLEACH_PENDING = 1,        /* pleach_wait: the call is not complete yet */
	PLEACH_INVALID = 2,        /* an argument is wrong */
	PLEACH_FORKED = 3,         /* this process is a fork of the one that loaded the library */
	PLEACH_CANCELED = 4,       /* by pleach_cancel or pleach_interrupt */
	PLEACH_TIMED_OUT = 5,      /* timeout_ms is over; ranks: those that have not arrived */
	PLEACH_FAILED = 6,         /* a call with PLEACH_REPORT: ranks have failed */
	PLEACH_REVOKED = 7,        /* the communicator was revoked; ranks: by which */
	PLEACH_MISMATCH = 8,       /* two processes, ranks, have called different things */
	PLEACH_DIVERGED = 9,       /* a restore gave another input than the task had; ranks: its owner */
	PLEACH_HELD = 10,          /* the log is full of calls that are held; ranks: the holder */
	PLEACH_ABORTED = 11,       /* the call has ended with an error on another process, ranks */
	PLEACH_NOT_RESTORED = 12,  /* the input of a task, ranks, cannot be restored */
	PLEACH_TOO_MANY_DEAD = 13, /* more processes have died than PLEACH_CORRECTED tolerates */
	PLEACH_EVICTED = 14,       /* the others have removed this process */
	PLEACH_NO_QUORUM = 15,     /* this process is cut off; ranks: those that it does not reach */
	PLEACH_NOT_ADMITTED = 16,  /* a replacement made a call before PLEACH_ADMIT */
	PLEACH_ENDED = 17,         /* the job of a replacement has ended without it: exit with 0 */
	PLEACH_CLOSED = 18,        /* the world was finalized, closed or aborted */
	PLEACH_OTHER = 19,         /* see the text */
	PLEACH_OPERATOR = 20       /* combine failed on this process, ranks */
} pleach_code;

enum {
	PLEACH_TEXT = 1024, /* bytes of an error's text, which is cut beyond */
	PLEACH_RANKS = 64   /* ranks of an error, of which there may be more */
};

/* pleach_error says what went wrong, and where. */
typedef struct {
	int32_t code;                /* a pleach_code */
	int32_t ranks_count;         /* of which the first PLEACH_RANKS are in ranks */
	int32_t ranks[PLEACH_RANKS]; /* which ones depends on the code */
	char text[PLEACH_TEXT];      /* ends with a zero byte */
} pleach_error;

/* pleach_type is the type of elements. Half-precision numbers are combined in single
 * precision and rounded to the nearest after each operation. */
typedef enum {
	PLEACH_U8 = 0, /* bytes, too */
	PLEACH_I8 = 1,
	PLEACH_U16 = 2,
	PLEACH_I16 = 3,
	PLEACH_U32 = 4,
	PLEACH_I32 = 5,
	PLEACH_U64 = 6,
	PLEACH_I64 = 7,
	PLEACH_F16 = 8,  /* IEEE 754 binary16 */
	PLEACH_BF16 = 9, /* the upper half of a float */
	PLEACH_F32 = 10,
	PLEACH_F64 = 11,
	PLEACH_C64 = 12, /* float _Complex: PLEACH_SUM and PLEACH_PROD */
	PLEACH_C128 = 13, /* double _Complex */
	PLEACH_BOOL = 14  /* _Bool; PLEACH_SUM and PLEACH_MAX mean PLEACH_OR, PLEACH_PROD and PLEACH_MIN mean PLEACH_AND */
} pleach_type;

/* pleach_op combines elements. PLEACH_AND and PLEACH_OR are for integers and PLEACH_BOOL. */
typedef enum {
	PLEACH_SUM = 0,
	PLEACH_PROD = 1,
	PLEACH_MIN = 2,
	PLEACH_MAX = 3,
	PLEACH_AND = 4,
	PLEACH_OR = 5,
	PLEACH_USER = 6 /* pleach_call.combine */
} pleach_op;

/* pleach_mode is what happens to a call when a process dies. */
typedef enum {
	PLEACH_RUN_THROUGH = 0, /* survivors take over its task; the result is the failure-free one */
	PLEACH_REPORT = 1,      /* the call ends with PLEACH_FAILED */
	PLEACH_CORRECTED = 2    /* Reduce and Allreduce: up to `dead` deaths cost nothing but their inputs */
} pleach_mode;

/*
 * pleach_kind is which call to make. Each uses the fields of a pleach_call that its line names, beside
 * type, mode, timeout_ms and the callbacks. `in` is elements, `parts` is elements for each task.
 *
 *	call             input            uses             result
 */
typedef enum {
	PLEACH_BARRIER = 0,
	PLEACH_ONCE = 1,            /*        once                     */
	PLEACH_BROADCAST = 2,       /* in     root             elements */
	PLEACH_REDUCE = 3,          /* in     op, root, dead   elements, at the root */
	PLEACH_ALLREDUCE = 4,       /* in     op, dead         elements */
	PLEACH_SCAN = 5,            /* in     op               elements */
	PLEACH_EXSCAN = 6,          /* in     op               elements, but for task 0 */
	PLEACH_GATHER = 7,          /* in     root             parts by task, at the root */
	PLEACH_ALLGATHER = 8,       /* in                      parts by task */
	PLEACH_SCATTER = 9,         /* parts  root             elements */
	PLEACH_REDUCE_SCATTER = 10, /* parts  op               elements */
	PLEACH_ALLTOALL = 11,       /* parts                   parts by task */
	PLEACH_EXCHANGE = 12,       /* parts  mutual           parts of those tasks that have sent */

	PLEACH_AGREE = 13,    /* value                         value: the bits that all have set */
	PLEACH_SPLIT = 14,    /* in: an I32 for each task, its color   comm: of the tasks of this one's color */
	PLEACH_SHRINK = 15,   /*                               comm: of the survivors */
	PLEACH_ADMIT = 16,    /* a world                       I32 elements: ranks taken in; value: the root */
	PLEACH_EVICT = 17,    /* a world, root: the rank to remove */
	PLEACH_FINALIZE = 18  /* a world                       ends the job, as MPI_Finalize */
} pleach_kind;

/* pleach_part is elements of a task, or for a task. */
typedef struct {
	int32_t task;
	const void *data;
	size_t count; /* of elements */
} pleach_part;

/* pleach_comm is a communicator: a world, or one that was derived from it. */
typedef struct pleach_comm pleach_comm;
/* pleach_request is a call that is under way. */
typedef struct pleach_request pleach_request;
/* pleach_input takes the input of a task that is restored: see pleach_put. */
typedef struct pleach_input pleach_input;

/* pleach_call is a call, its callbacks and its result. Zero it first. It may be used again after
 * pleach_result_free. */
typedef struct {
	int32_t kind;       /* a pleach_kind */
	int32_t type;       /* a pleach_type */
	int32_t op;         /* a pleach_op */
	int32_t mode;       /* a pleach_mode */
	int32_t root;
	int32_t dead;       /* deaths that a corrected call tolerates */
	int32_t mutual;     /* nonzero: each task is sent something by exactly those that it sends something */
	int32_t timeout_ms; /* 0: none */

	const void *in; /* of this process's task; not used after the call has returned */
	size_t count;
	const pleach_part *parts; /* PLEACH_EXCHANGE: by their tasks; others: one for each task, in order */
	size_t parts_count;
	/* out is memory for the result, of out_count elements, which does not overlap the input. Parts are
	 * written one after another. If NULL, the library allocates, and `result` has it. */
	void *out;
	size_t out_count;

	/* restore gives the input of a task whose process has died: exactly what that process has passed, or
	 * would have passed, to this very call, by pleach_put. It returns 0, or another number if it cannot.
	 * It is called by another thread, possibly after the call has returned: see `retired`. */
	int (*restore)(void *user, int task, pleach_input *input);
	/* takeover gets the result of a task whose process has died before it completed the call. It is called
	 * by another thread, possibly after the call has returned. The memory is valid until it returns. */
	void (*takeover)(void *user, int task, const pleach_part *parts, size_t parts_count);
	/* once is what PLEACH_ONCE runs on one process, and again on another one if that dies. It returns 0, or
	 * another number to end the call with an error. */
	int (*once)(void *user);
	/* combine is PLEACH_USER: into = left ⊕ right, element by element. It is associative. `into` may be
	 * `left` or `right`. It returns 0, or another number to end the call on all processes: with PLEACH_OPERATOR
	 * here, and with PLEACH_ABORTED on the others. */
	int (*combine)(void *user, void *into, const void *left, const void *right, size_t count);
	void *user; /* of all callbacks */

	/* What the call returns. */
	int32_t present;           /* nonzero if there is a result, as there is at the root only for some */
	size_t result_count;       /* elements of the result, of all parts together */
	const pleach_part *result; /* if out is NULL: parts of the result, one if it is elements */
	size_t result_parts;
	pleach_comm *comm; /* of PLEACH_SPLIT and PLEACH_SHRINK */
	uint64_t value;    /* in and out: of PLEACH_AGREE; out: of PLEACH_ADMIT */
	/* number counts the calls of this communicator from 1. Callbacks of calls up to `retired` are never
	 * called again, so that their memory may be freed. */
	uint64_t number, retired;
	pleach_error error;
	uintptr_t memory; /* the library's */
} pleach_call;

/* pleach_config has settings of a world. All zero is right under a launcher: pleach run, Slurm, Open MPI,
 * PMI, torchrun, Kubernetes. */
typedef struct {
	const char *addresses;       /* host:port of each process, by rank, with commas; NULL: the launcher's */
	int32_t rank;                /* of this process in addresses */
	int32_t replacement;         /* nonzero: it takes the place of a process that has died */
	int32_t start_timeout_ms;    /* 0: 30 s */
	int32_t progress_timeout_ms; /* a process that is stuck for so long is removed; 0: the launcher's word, or never */
	int32_t poll_us;             /* how long a call looks before it sleeps; 0: up to 1 ms, < 0: not at all */
} pleach_config;

/* pleach_version returns the version of the library. */
const char *pleach_version(void);

/* pleach_world makes this process part of a job. config may be NULL. */
int pleach_world(const pleach_config *config, pleach_comm **world, pleach_error *error);
/* pleach_close leaves the job: the others take over this process's tasks. */
int pleach_close(pleach_comm *world);
/* pleach_abort stops at once, as a crash does. PLEACH_FINALIZE is how a job ends. */
int pleach_abort(pleach_comm *world);
/* pleach_free frees a communicator. A world that was not ended is aborted. */
int pleach_free(pleach_comm *comm);

/* pleach_do makes a call, and returns when it is complete, with call->error.code. */
int pleach_do(pleach_comm *comm, pleach_call *call);
/* pleach_start begins a call of a kind up to PLEACH_EXCHANGE. Calls are started in the same order on all processes,
 * and run beside each other. The call and its memory belong to the library until pleach_wait has
 * returned something else than PLEACH_PENDING. */
int pleach_start(pleach_comm *comm, pleach_call *call, pleach_request **request);
/* pleach_wait waits for a call for up to timeout_ms, or until it is complete if that is negative. It
 * returns PLEACH_PENDING, or call->error.code; then the request is gone. */
int pleach_wait(pleach_request *request, int timeout_ms);
/* pleach_cancel ends a call with PLEACH_CANCELED. It still has to be waited for. The other processes get an
 * error, too. */
int pleach_cancel(pleach_request *request);
/* pleach_interrupt ends all calls of this process in a world, and in communicators derived from it, with
 * PLEACH_CANCELED. */
int pleach_interrupt(pleach_comm *world);
/* pleach_result_free frees the result of a call. */
int pleach_result_free(pleach_call *call);
/* pleach_put gives the elements of a task that is restored, which are copied. task is the one that a
 * part is for; the input of a call that has no parts is put once, and task is ignored. */
int pleach_put(pleach_input *input, int task, const void *data, size_t count);

/* pleach_reason sets the text of the error of a restore, a once or a combine that fails: it is called within the
 * callback, which then returns nonzero. The text, up to PLEACH_TEXT bytes, is in the errors of all processes. */
int pleach_reason(const char *text);

/* Questions return -1 for a communicator that is NULL. */
/* pleach_rank is this process's rank, and pleach_size the number of tasks, which does not change. */
int pleach_rank(const pleach_comm *comm);
int pleach_size(const pleach_comm *comm);
/* pleach_owner is the rank of the process that runs a task now. */
int pleach_owner(const pleach_comm *comm, int task);
/* pleach_world_rank is the rank in the world of a rank in a communicator. */
int pleach_world_rank(const pleach_comm *comm, int rank);
/* pleach_replacement is nonzero if this process has taken the place of one that has died. */
int pleach_replacement(const pleach_comm *world);
/* pleach_tasks and pleach_failed list the tasks that this process owns now, and the ranks that have failed;
 * pleach_ack_failed acknowledges them, for PLEACH_AGREE with PLEACH_REPORT. They write up to `most` numbers, and
 * return how many there are. */
int pleach_tasks(const pleach_comm *comm, int32_t *tasks, int most);
int pleach_failed(const pleach_comm *comm, int32_t *ranks, int most);
int pleach_ack_failed(pleach_comm *comm, int32_t *ranks, int most);
/* pleach_fencing_token writes a number that guards what a task writes outside of the job. It returns 1 if this
 * process owns the task, and 0 if not. */
int pleach_fencing_token(const pleach_comm *comm, int task, uint64_t *token);
/* pleach_revoke ends all calls of a communicator on all processes with PLEACH_REVOKED. */
int pleach_revoke(pleach_comm *comm);
/* pleach_hold keeps what this process receives in the logs of the others, from the next call on, until
 * pleach_release. */
int pleach_hold(pleach_comm *comm);
int pleach_release(pleach_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
