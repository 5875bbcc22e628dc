#include "base.h"

//== clock =============================================================================================================

/* Returns the nanoseconds since a fixed time in the past. */
OPD_UNUSED OPDI_INTERNAL int64_t opdi_clock(void) {
#if defined(_WIN32)                               /* clock_gettime would need pthreads */
    static long long rate;
    long long now = 0, each = OPDI_LOAD(&rate);
    if (!each) {
        (void)QueryPerformanceFrequency((union _LARGE_INTEGER *)(void *)&each);
        OPDI_STORE(&rate, each);
    }
    (void)QueryPerformanceCounter((union _LARGE_INTEGER *)(void *)&now);
    return now / each * 1000000000 + now % each * 1000000000 / each;
#else
    struct timespec now;
#if defined(CLOCK_MONOTONIC)
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
#else
    (void)timespec_get(&now, TIME_UTC);
#endif
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
#endif
}
