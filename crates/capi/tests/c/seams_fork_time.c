/* Measures forks: one thread makes memory dirty and purges it, and 63 allocate and free, while the first thread forks. Also runs without this library.
 *
 *     seams_fork_time THREADS FORKS
 *
 * Prints the median and the mean time of a fork in the parent, in microseconds, how many MiB were resident before the last one, and
 * the longest pause of a call to malloc or free in the other threads. */
#define _GNU_SOURCE
#include "clock.h"
#include "expect.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int is_over;
static double longest_us[64];

/* Allocates and frees 3 MiB in blocks of 64 bytes to 256 KiB, and rests for a millisecond, so that the threads do not only wait for a
 * processor. */
static void *bursts(void *argument) {
    enum { BLOCKS = 48 };
    size_t number = (size_t)argument;
    void *blocks[BLOCKS];
    uint64_t seed = number + 1;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < BLOCKS; i++) {
            size_t bytes = 64u << next_random(&seed) % 13;
            double before = now_us();
            blocks[i] = malloc(bytes);
            double took = now_us() - before;
            longest_us[number] = took > longest_us[number] ? took : longest_us[number];
            EXPECT(blocks[i]);
            memset(blocks[i], 1, bytes);
        }
        for (int i = 0; i < BLOCKS; i++) {
            double before = now_us();
            free(blocks[i]);
            double took = now_us() - before;
            longest_us[number] = took > longest_us[number] ? took : longest_us[number];
        }
        usleep(1000);
    }
    return NULL;
}

/* Makes 32 MiB dirty in blocks of 1 MiB, and gives them back, again and again. */
static void *purges(void *unused) {
    enum { BLOCKS = 32, BYTES = 1 << 20 };
    char *blocks[BLOCKS];
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < BLOCKS; i++) {
            EXPECT(blocks[i] = malloc(BYTES));
            memset(blocks[i], 1, BYTES);
        }
        for (int i = 0; i < BLOCKS; i++) {
            free(blocks[i]);
        }
        malloc_trim(0);
    }
    return unused;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static long resident_mib(void) {
    long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    EXPECT(statm && fscanf(statm, "%ld %ld", &pages, &resident) == 2);
    fclose(statm);
    return resident * sysconf(_SC_PAGESIZE) >> 20;
}

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    int n_threads = atoi(argv[1]), n_forks = atoi(argv[2]);
    EXPECT(n_threads <= 64 && n_forks > 0);
    pthread_t threads[64];
    for (size_t i = 0; i < (size_t)n_threads; i++) {
        EXPECT(pthread_create(&threads[i], NULL, i == 0 ? purges : bursts, (void *)i) == 0);
    }
    usleep(100000);
    double *times = calloc((size_t)n_forks, sizeof *times), sum = 0;
    long resident = 0;
    for (int i = 0; i < n_forks; i++) {
        resident = resident_mib();
        double before = now_us();
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100));
            _exit(0);
        }
        times[i] = now_us() - before;
        sum += times[i];
        int status;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        usleep(500);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    double longest = 0;
    for (int i = 0; i < n_threads; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
        longest = longest_us[i] > longest ? longest_us[i] : longest;
    }
    qsort(times, (size_t)n_forks, sizeof *times, by_size);
    printf("%.0f %.0f %ld %.0f\n", times[n_forks / 2], sum / n_forks, resident, longest);
    free(times);
    return 0;
}
