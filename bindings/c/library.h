/* What library.c and the Go files share: the memory behind handles, and calls of callbacks, which Go
 * cannot make itself. */
#ifndef PLEACH_LIBRARY_H
#define PLEACH_LIBRARY_H

#include <string.h>

#include "pleach.h"

/* The rank, the size and whether it is a replacement never change, so they need no call into Go. */
struct pleach_comm {
	uintptr_t handle;
	int rank, size, replacement;
};

struct pleach_request {
	uintptr_t handle;
};

struct pleach_input {
	uintptr_t handle;
};

/* callbacks are those of a call, for what is called after it has returned. */
typedef struct {
	int (*restore)(void *user, int task, pleach_input *input);
	void (*takeover)(void *user, int task, const pleach_part *parts, size_t parts_count);
	int (*once)(void *user);
	int (*combine)(void *user, void *into, const void *left, const void *right, size_t count);
	void *user;
} callbacks;

/* reason_of_failure is the text that this thread's callback has given. */
extern _Thread_local char reason_of_failure[PLEACH_TEXT];

/* take_reason copies the text of a callback that has failed: Go may continue on another thread. */
static inline int take_reason(int code, char *reason) {
	if (code) memcpy(reason, reason_of_failure, PLEACH_TEXT);
	reason_of_failure[0] = 0;
	return code;
}

static inline int call_restore(const callbacks *c, int task, pleach_input *input, char *reason) {
	return take_reason(c->restore(c->user, task, input), reason);
}

static inline void call_takeover(const callbacks *c, int task, const pleach_part *parts, size_t count) {
	c->takeover(c->user, task, parts, count);
}

static inline int call_once(const callbacks *c, char *reason) { return take_reason(c->once(c->user), reason); }

static inline int call_combine(const callbacks *c, void *into, const void *left, const void *right, size_t count, char *reason) {
	return take_reason(c->combine(c->user, into, left, right, count), reason);
}

#endif
