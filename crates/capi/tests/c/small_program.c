/* A small program. The library has no reason to read the clock in it, whose code would be resident: it would read it by the function below. And of the
   library's own code at most two of the windows of 64 KiB in which the kernel maps files are resident, wherever those begin. */
#include "expect.h"
#include <time.h>

#define N_BLOCKS 400
#define CODE_MOST_KIB 128

/* Resident KiB of the library's code. */
static int code_kib(void) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    int is_code = 0, kib = 0;
    EXPECT(file);
    while (fgets(line, sizeof line, file)) {
        if (strchr(line, '-') && strstr(line, " r")) {
            is_code = strstr(line, "r-xp") && strstr(line, "libfreestone.so");
        } else if (is_code && strncmp(line, "Rss:", 4) == 0) {
            kib += atoi(line + 4);
        }
    }
    fclose(file);
    return kib;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static const char text[] = "the clock was read\n";
    (void)clock;
    (void)!write(2, text, sizeof text - 1);
    *now = (struct timespec){0};
    return 0;
}

int main(void) {
    static char *blocks[N_BLOCKS];
    uint64_t state = 88172645463325252;
    for (int i = 0; i < 200000; i++) {
        char **block = &blocks[next_random(&state) % N_BLOCKS];
        size_t bytes = 16 + next_random(&state) % 1024;
        free(*block);
        *block = malloc(bytes);
        EXPECT(*block);
        memset(*block, 1, bytes);
    }
    EXPECT(sysconf(_SC_PAGESIZE) != 4096 || code_kib() <= CODE_MOST_KIB);
    return 0;
}
