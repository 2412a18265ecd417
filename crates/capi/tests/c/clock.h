/* What time it is, for programs that measure or wait. */
#include <time.h>

/* Microseconds of a clock that never goes back. */
static inline double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}
