/* The allocator under system call filters, written by hand: calls that are refused, and calls that end the process. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define MOST_CALLS 16

/* Answers `listed` to the listed calls, and `others` to all others. */
static void filter(const long *calls, size_t n, unsigned listed, unsigned others) {
    struct sock_filter program[2 * MOST_CALLS + 2];
    unsigned short length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t at = 0; at < n && at < MOST_CALLS; at++) {
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[at], 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    struct sock_fprog both = {length, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &both)) {
        /* Filters cannot be installed here: nothing is tested. */
        _exit(77);
    }
}

static void fail(const char *what) {
    (void)!write(2, what, strlen(what));
    (void)!write(2, "\n", 1);
    _exit(1);
}

/* A block whose bytes are all `size`, cut to eight bits. */
static char *made(char *block, size_t size) {
    if (!block) {
        fail("malloc failed");
    }
    return memset(block, (int)(size & 0xff), size);
}

/* Resident memory in MiB. */
static long resident_mib(void) {
    FILE *statm = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (!statm || fscanf(statm, "%*d %ld", &pages) != 1) {
        fail("the resident memory cannot be read");
    }
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE) / (long)MIB;
}

/* A burst of 64 MiB in small blocks of which every 40th stays for a while, so that OS pages in many places go back. Most of them have gone before the
   last blocks are freed, if that is to be checked. */
static void burst(int checks) {
    enum { BURST = 64 << 10 };
    static char *all[BURST];
    for (size_t at = 0; at < BURST; at++) {
        all[at] = made(malloc(1024), 1024);
        all[at][0] = all[at][1023] = (char)at;
    }
    for (size_t at = 0; at < BURST; at++) {
        if (at % 40) {
            free(all[at]);
        }
    }
    if (checks && resident_mib() > 40) {
        fail("the memory of a burst does not go back");
    }
    for (size_t at = 0; at < BURST; at += 40) {
        if (all[at][0] != (char)at || all[at][1023] != (char)at) {
            fail("a live block has lost its contents");
        }
        free(all[at]);
    }
}

/* Work that makes every system call sooner or later: many small blocks, large ones that are allocated, grown and freed, more than 32 MiB in all. */
static void work(void) {
    static char *kept[2000];
    for (size_t at = 0; at < LENGTH(kept); at++) {
        kept[at] = made(malloc(20000), 20000);
    }
    for (int round = 0; round < 5; round++) {
        char *block = made(malloc(9 * MIB), 9 * MIB);
        char *wall = made(malloc(1 * MIB), 1 * MIB);
        block = realloc(block, 30 * MIB);
        if (!block || block[9 * MIB - 1] != (char)(9 * MIB & 0xff)) {
            fail("realloc failed, or lost bytes");
        }
        errno = 7;
        free(wall);
        free(block);
        if (errno != 7) {
            fail("free changed errno");
        }
        char *zero = calloc(1, 5 * MIB);
        for (size_t at = 0; at < 5 * MIB; at += 999) {
            if (!zero || zero[at]) {
                fail("calloc is not zero");
            }
        }
        free(zero);
    }
    for (size_t at = 0; at < LENGTH(kept); at++) {
        free(kept[at]);
    }
    burst(0);
}

static const long FEW[] = {SYS_mmap, SYS_munmap, SYS_madvise, SYS_futex, SYS_write, SYS_exit_group};
static const long FEWEST[] = {SYS_mmap, SYS_write, SYS_exit_group};

static atomic_int go, done;

/* A thread that was started before the filter and allocates after it; it does not end, because that would make other calls. */
static void *second(void *unused) {
    while (!atomic_load(&go)) {
    }
    filter(FEW, LENGTH(FEW), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
    made(malloc(100), 100);
    work();
    atomic_store(&done, 1);
    for (;;) {
    }
    return unused;
}

/* Runs this program's part `work` from its very start with each of some calls refused. */
static int each_refused(char *self, unsigned error) {
    static const struct {
        const char *name;
        long call;
    } CALLS[] = {
        {"sysinfo", SYS_sysinfo},         {"prlimit64", SYS_prlimit64},       {"getrandom", SYS_getrandom},
        {"madvise", SYS_madvise},         {"mremap", SYS_mremap},             {"mincore", SYS_mincore},
        {"sched_yield", SYS_sched_yield}, {"clock_gettime", SYS_clock_gettime}, {"futex", SYS_futex},
        {"clone", SYS_clone},             {"clone3", SYS_clone3},             {"prctl", SYS_prctl},
        {"getpid", SYS_getpid},           {"rt_sigprocmask", SYS_rt_sigprocmask},
        {"process_madvise", SYS_process_madvise},
    };
    for (size_t at = 0; at < LENGTH(CALLS); at++) {
        pid_t child = fork();
        if (!child) {
            filter(&CALLS[at].call, 1, SECCOMP_RET_ERRNO | error, SECCOMP_RET_ALLOW);
            execl(self, self, "work", NULL);
            _exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            return 77;
        }
        if (status) {
            fprintf(stderr, "%s refused with error %u: status %#x\n", CALLS[at].name, error, status);
            return 1;
        }
    }
    return 0;
}

static volatile sig_atomic_t n_refused;
static unsigned refused_with;

/* Counts a system call, and refuses it. */
static void refuse(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)info;
    n_refused++;
    ucontext_t *interrupted = context;
#if defined __x86_64__
    interrupted->uc_mcontext.gregs[REG_RAX] = -(greg_t)refused_with;
#elif defined __aarch64__
    interrupted->uc_mcontext.regs[0] = -(uint64_t)refused_with;
#else
    (void)interrupted;
    _exit(77);
#endif
}

static void expect_no_memory(size_t size) {
    errno = 0;
    if (malloc(size) || errno != ENOMEM) {
        fail("memory, or another error than that there is none");
    }
}

/* No memory is mapped from before the first allocation on: each `malloc` fails with few system calls. */
static void nothing_maps(unsigned error) {
    enum { N_BLOCKS = 20, CALLS_EACH = 40 };
    static const long calls[] = {SYS_mmap, SYS_munmap, SYS_getrandom, SYS_futex, SYS_madvise, SYS_mprotect, SYS_brk};
    struct sigaction action = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO};
    refused_with = error;
    sigaction(SIGSYS, &action, NULL);
    filter(calls, LENGTH(calls), SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
    for (size_t at = 0; at < N_BLOCKS; at++) {
        expect_no_memory(100 + at * 9000);
    }
    if (n_refused < N_BLOCKS) {
        fail("the kernel was not asked");
    }
    if (n_refused > N_BLOCKS * CALLS_EACH) {
        fail("a malloc that fails makes many system calls");
    }
    _exit(0);
}

/* A limit of address space that leaves no memory is set before the first allocation, and raised again. */
static void maps_again(void) {
    struct rlimit before, none = {.rlim_cur = 1 << 16};
    getrlimit(RLIMIT_AS, &before);
    none.rlim_max = before.rlim_max;
    for (int round = 0; round < 3; round++) {
        setrlimit(RLIMIT_AS, &none);
        expect_no_memory(100);
        expect_no_memory(100000);
    }
    setrlimit(RLIMIT_AS, &before);
    made(malloc(100), 100);
    made(malloc(100000), 100000);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    if (!strcmp(part, "work")) {
        work();
        _exit(0);
    }
    if (!strcmp(part, "each_refused")) {
        int refused = each_refused(argv[0], EPERM);
        return refused ? refused : each_refused(argv[0], ENOSYS);
    }
    if (!strcmp(part, "nothing_maps")) {
        nothing_maps(ENOMEM);
    }
    if (!strcmp(part, "nothing_may_be_mapped")) {
        nothing_maps(EPERM);
    }
    if (!strcmp(part, "maps_again")) {
        maps_again();
    }
    free(malloc(100));
    if (!strcmp(part, "all_refused")) {
        filter(FEWEST, LENGTH(FEWEST), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
        work();
        _exit(0);
    }
    if (!strcmp(part, "refused_later")) {
        static const long call = SYS_process_madvise;
        burst(1);
        filter(&call, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
        burst(1);
        _exit(0);
    }
    if (!strcmp(part, "killed")) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, second, NULL)) {
            return 2;
        }
        filter(FEW, LENGTH(FEW), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
        work();
        atomic_store(&go, 1);
        while (!atomic_load(&done)) {
        }
        /* With what the library does at exit. */
        exit(0);
    }
    return 1;
}
