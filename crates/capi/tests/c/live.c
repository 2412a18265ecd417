/* The page of statistics that the option `live` keeps: who may read it, and who has one; by argument. The path comes in a second one. */
#include "expect.h"
#include "freestone.h"
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The words of crates/freestone/src/stats/live_page.rs. */
enum { PROCESS = 2, LATEST = 3, HEADER = 8 };

static const char *folder;

static const char *page_of(pid_t process) {
    static char path[500];
    snprintf(path, sizeof path, "%s/%d.live", folder, (int)process);
    return path;
}

/* A word of a page; 0 if there is no page, or another thread is just making it, so that it ends before the word. */
static uint64_t word(pid_t process, int index) {
    uint64_t value = 0;
    FILE *page = fopen(page_of(process), "r");
    if (page) {
        EXPECT(fseek(page, index * 8, SEEK_SET) == 0 && (fread(&value, 8, 1, page) == 1 || feof(page)));
        fclose(page);
    }
    return value;
}

static void pause_ms(int ms) { usleep((useconds_t)ms * 1000); }

/* Allocates until there is a newer state: slow paths write them, and the background thread. */
static void await_state(uint64_t after) {
    for (int i = 0; word(getpid(), LATEST) <= after; i++) {
        EXPECT(i < 3000);
        free(HIDE(malloc(200000)));
        pause_ms(10);
    }
}

static void kept(void) {
    struct stat facts;
    free(HIDE(malloc(1)));
    EXPECT(stat(page_of(getpid()), &facts) == 0 && (facts.st_mode & 07777) == 0600 && facts.st_uid == geteuid());
    EXPECT(word(getpid(), PROCESS) == (uint64_t)getpid() && word(getpid(), LATEST) >= 1);
    char *block = malloc(48 << 20);
    EXPECT(block);
    await_state(word(getpid(), LATEST) + 1);
    /* The last state's half; `live` is the first figure. */
    uint64_t latest = word(getpid(), LATEST), half = (uint64_t)(facts.st_size / 8 - HEADER) / 2;
    uint64_t live = word(getpid(), (int)(HEADER + latest % 2 * half + 4));
    EXPECT(live >= 48 << 20 && live < 64 << 20);
    free(block);
}

/* A child gets a page of its own, and leaves its parent's alone. */
static void forks(void) {
    free(HIDE(malloc(1)));
    await_state(0);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        EXPECT(word(getpid(), LATEST) == 0);
        await_state(0);
        EXPECT(word(getpid(), PROCESS) == (uint64_t)getpid() && word(parent, PROCESS) == (uint64_t)parent);
        exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(access(page_of(child), F_OK) != 0);
    uint64_t before = word(parent, LATEST);
    await_state(before);
}

/* A child that a raw system call made, for which no handler ran, allocates on, and leaves its parent's page alone. */
static void raw(void) {
    await_state(0);
    pid_t parent = getpid(), child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        for (int i = 0; i < 30; i++) {
            free(HIDE(malloc(200000)));
            pause_ms(10);
        }
        unlink(page_of(getpid()));
        _exit(word(parent, PROCESS) != (uint64_t)parent);
    }
    int status;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* A process that is killed leaves its page. */
static void killed(void) {
    pid_t child = fork();
    if (child == 0) {
        await_state(0);
        kill(getpid(), SIGKILL);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    EXPECT(word(child, PROCESS) == (uint64_t)child && word(child, LATEST) >= 1);
    EXPECT(unlink(page_of(child)) == 0);
}

static void *allocates(void *unused) {
    for (int i = 0; i < 2000; i++) {
        free(HIDE(malloc(40000)));
        free(HIDE(malloc(300000)));
    }
    return unused;
}

/* Several threads write states and fork meanwhile. */
static void threads(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) {
        EXPECT(pthread_create(&all[i], NULL, allocates, NULL) == 0);
    }
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(HIDE(malloc(300000)));
            _exit(0);
        }
        int status;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        unlink(page_of(child));
    }
    for (int i = 0; i < 4; i++) {
        EXPECT(pthread_join(all[i], NULL) == 0);
    }
    await_state(word(getpid(), LATEST));
}

/* A setuid program, or one whose path cannot be used: it runs without a page. */
static void without(void) {
    free(HIDE(malloc(1)));
    for (int i = 0; i < 20; i++) {
        free(HIDE(malloc(200000)));
        pause_ms(10);
    }
    EXPECT(access(page_of(getpid()), F_OK) != 0);
}

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    folder = argv[2];
    const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"kept", kept}, {"forks", forks}, {"raw", raw}, {"killed", killed}, {"threads", threads}, {"without", without}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            return 0;
        }
    }
    return 2;
}
