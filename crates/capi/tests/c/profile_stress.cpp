// What makes profilers hang or crash, all at once: threads that load libraries, fork, throw, take signals on stacks of their own, run on the smallest stack there is, and
// end. Arguments: how often.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include "expect.h"

static long n_times;
static int null_file;
static int (*dump_fd)(int, int, void *);

// Blocks of many sizes that come and go.
static void *churn(void *argument) {
    const unsigned N = 64;
    void *blocks[N] = {};
    unsigned state = (unsigned)(size_t)argument * 2654435761u + 1;
    for (long n = 0; n < n_times; n++) {
        state = state * 1664525u + 1013904223u;
        unsigned at = (state >> 8) % N;
        free(blocks[at]);
        blocks[at] = malloc((state >> 16) % 700);
        EXPECT(blocks[at]);
    }
    for (void *block : blocks) free(block);
    return nullptr;
}

static void *load(void *) {
    const char *names[] = {"libm.so.6", "libgcc_s.so.1", "libz.so.1", "libresolv.so.2"};
    for (long n = 0; n < n_times / 200 + 1; n++) {
        void *library = dlopen(names[n % 4], RTLD_NOW | RTLD_LOCAL);
        if (library) dlclose(library);
    }
    return nullptr;
}

static void *fork_often(void *) {
    for (long n = 0; n < n_times / 2000 + 1; n++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            for (size_t at = 0; at < 100; at++) free(malloc(at * 16));
            _exit(dump_fd(null_file, 0, nullptr) ? 1 : 0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
    return nullptr;
}

static void *tiny(void *argument) {
    for (size_t n = 0; n < 50; n++) free(malloc(n * 20));
    return argument;
}

static void *threads_often(void *) {
    pthread_attr_t attributes;
    EXPECT(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
    for (long n = 0; n < n_times / 2000 + 1; n++) {
        pthread_t thread;
        EXPECT(!pthread_create(&thread, &attributes, tiny, nullptr) && !pthread_join(thread, nullptr));
    }
    return nullptr;
}

// Allocates while the stack is unwound.
struct Busy {
    std::string text = std::string(100, 'x');
    ~Busy() { free(malloc(text.size())); }
};

__attribute__((noinline)) static int descend(int depth) {
    Busy busy;
    std::vector<int> numbers((size_t)depth + 1);
    if (depth == 0) throw std::runtime_error("the bottom, in a text that has no room in a string itself");
    return descend(depth - 1) + numbers[0];
}

static void *throw_often(void *) {
    long n_caught = 0;
    for (long n = 0; n < n_times / 20 + 1; n++) {
        try {
            descend((int)(n % 20));
        } catch (const std::exception &error) {
            n_caught += error.what()[0] == 't';
        }
    }
    EXPECT(n_caught == n_times / 20 + 1);
    return nullptr;
}

// A dump allocates nothing and takes no lock: it may come from a handler. So may an allocation here.
static void on_signal(int) {
    dump_fd(null_file, 1, nullptr);
    free(malloc(50));
}

// The handler's stack is another one.
static void *with_alternate_stack(void *) {
    auto stack = std::make_unique<char[]>(64 << 10);
    stack_t alternate = {};
    alternate.ss_sp = stack.get();
    alternate.ss_size = 64 << 10;
    EXPECT(!sigaltstack(&alternate, nullptr));
    for (int n = 0; n < 20; n++) EXPECT(!raise(SIGUSR1));
    churn((void *)7);
    alternate.ss_flags = SS_DISABLE;
    EXPECT(!sigaltstack(&alternate, nullptr));
    return nullptr;
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    n_times = atol(argv[1]);
    null_file = open("/dev/null", O_WRONLY);
    dump_fd = (int (*)(int, int, void *))dlsym(RTLD_DEFAULT, "freestone_profile_dump_fd");
    EXPECT(null_file >= 0 && dump_fd);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    EXPECT(!sigaction(SIGALRM, &action, nullptr) && !sigaction(SIGUSR1, &action, nullptr));
    void *(*work[])(void *) = {churn, load, fork_often, threads_often, throw_often, with_alternate_stack};
    const size_t N = sizeof work / sizeof *work;
    pthread_t threads[N];
    for (size_t n = 0; n < N; n++) EXPECT(!pthread_create(&threads[n], nullptr, work[n], (void *)n));
    // From here on this thread, which gets the signal, calls no allocator that a handler could interrupt.
    struct itimerval often = {{0, 20000}, {0, 20000}};
    EXPECT(!setitimer(ITIMER_REAL, &often, nullptr));
    for (size_t n = 0; n < N; n++) EXPECT(!pthread_join(threads[n], nullptr));
    return 0;
}
