/* small_stacks.h: runs functions on threads with small stacks. */
#ifndef OPD_TESTS_SMALL_STACKS_H
#define OPD_TESTS_SMALL_STACKS_H
#include "check.h"
#include <pthread.h>

#define TOO_SMALL "the stack of this thread is too small"

/* What a function gave on its thread: what it returned, and the error. */
typedef struct outcome { int rc; opd_code code; bool too_small; char message[400]; } outcome;
typedef struct stack_job { int (*fn)(void *user); void *user; outcome result; } stack_job;
static void *on_thread(void *arg) {
    stack_job *const j = (stack_job *)arg;
    OPD_SCOPE { j->result.rc = j->fn(j->user); }
    j->result.code = opd_error_code();
    strncpy(j->result.message, opd_error_message(), sizeof j->result.message - 1);
    j->result.too_small = strstr(j->result.message, TOO_SMALL) != NULL;
    opd_error_clear();
    (void)opd_finish();
    return NULL;
}
/* Runs fn(user) on a thread with these attributes.  Returns false if the system has no such thread. */
static bool on_a_thread(const pthread_attr_t *attr, int (*fn)(void *user), void *user, outcome *result) {
    stack_job j;
    pthread_t id;
    memset(&j, 0, sizeof j);
    j.fn = fn;
    j.user = user;
    if (pthread_create(&id, attr, on_thread, &j)) { return false; }
    CHECK_INT(pthread_join(id, NULL), 0);
    *result = j.result;
    return true;
}
/* Runs fn(user) on a thread with a stack of kb KB.  Returns false if the system has no threads with so small a stack. */
static bool on_a_small_stack(int kb, int (*fn)(void *user), void *user, outcome *result) {
    pthread_attr_t attr;
    bool made;
    CHECK_INT(pthread_attr_init(&attr), 0);
    made = pthread_attr_setstacksize(&attr, (size_t)kb << 10) == 0 && on_a_thread(&attr, fn, user, result);
    (void)pthread_attr_destroy(&attr);
    return made;
}
#endif /* OPD_TESTS_SMALL_STACKS_H */
