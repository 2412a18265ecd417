// Small programs that lose blocks, or keep them in places that are easily overlooked: `leaks CASE`.
//
// Sizes are those of size classes, so that tools that count what was asked for and tools that count whole blocks agree.

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <dlfcn.h>
#include <freestone.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Outside the namespace and volatile, so that what is stored here stays stored.
void *volatile kept;
thread_local void *volatile kept_by_thread;

namespace {

struct Node {
    Node *next;
    Node *other;
    char rest[48];
};

pthread_barrier_t barrier;

// A compiler must not see that nothing uses the block.
void *volatile seen;

void *block(size_t bytes) {
    void *made = malloc(bytes);
    memset(made, 0, bytes);
    seen = made;
    seen = nullptr;
    return made;
}

Node *node(Node *next, Node *other = nullptr) {
    auto *made = static_cast<Node *>(block(sizeof(Node)));
    made->next = next;
    made->other = other;
    return made;
}

Node *list(int length) {
    Node *first = nullptr;
    for (int at = 0; at < length; at++) first = node(first);
    return first;
}

// Lost.

void single() { block(64); }
void lost_list() { list(10); }

void ring() {
    Node *one = node(nullptr);
    one->next = node(one);
}

void long_ring() {
    Node *first = node(nullptr), *last = first;
    for (int at = 0; at < 4; at++) last = node(last);
    first->next = last;
}

void tree() { node(node(node(nullptr), node(nullptr)), node(node(nullptr), node(nullptr))); }

void shared_tail() {
    Node *tail = node(nullptr);
    node(tail);
    node(tail);
}

void list_into_ring() {
    Node *one = node(nullptr);
    one->next = node(one);
    node(node(one));
}

void overwritten() {
    kept = block(64);
    kept = block(128);
}

void many() {
    for (int at = 0; at < 100; at++) seen = strdup("a text of thirty-one characters");
    seen = nullptr;
}

void grown() {
    void *made = realloc(block(64), 4096);
    seen = made;
    seen = nullptr;
}

void aligned() {
    seen = aligned_alloc(64, 128);
    seen = nullptr;
}

void large() { block(1 << 20); }

void large_holds_small() {
    auto **made = static_cast<void **>(block(1 << 20));
    made[1000] = block(64);
}

void packed() {
    auto *made = static_cast<char *>(block(64));
    kept = block(64);
    // No tool looks for addresses at places that are no multiple of their size.
    memcpy(static_cast<char *>(kept) + 3, &made, sizeof made);
}

struct Counted {
    int64_t value = 1;
    ~Counted() { seen = this; }
};

void array_with_cookie() {
    seen = new Counted[5];
    seen = nullptr;
}

void containers() {
    auto *made = new std::vector<std::unique_ptr<Node>>();
    made->reserve(4);
    for (int at = 0; at < 3; at++) made->push_back(std::unique_ptr<Node>(node(nullptr)));
    seen = made;
    seen = nullptr;
}

void *lose_one(void *) {
    single();
    return nullptr;
}

void by_a_thread() {
    pthread_t thread;
    pthread_create(&thread, nullptr, lose_one, nullptr);
    pthread_join(thread, nullptr);
}

void *lose_on_own_stack(void *) {
    void *volatile here = block(64);
    (void)here;
    return nullptr;
}

void on_a_former_stack() {
    pthread_t thread;
    pthread_create(&thread, nullptr, lose_on_own_stack, nullptr);
    pthread_join(thread, nullptr);
}

void *lose_and_exit(void *) {
    single();
    exit(0);
}

void by_a_thread_that_exits() {
    void *volatile here = block(128);
    pthread_t thread;
    pthread_create(&thread, nullptr, lose_and_exit, nullptr);
    pthread_join(thread, nullptr);
    free(here);
}

// Kept.

void global() { kept = block(64); }
void interior() { kept = static_cast<char *>(block(64)) + 40; }
void thread_local_storage() { kept_by_thread = block(64); }
void chain() { kept = list(10); }

void kept_array() { kept = new Counted[5]; }

void in_large() {
    auto **made = static_cast<void **>(block(1 << 20));
    made[100000] = block(64);
    kept = made;
}

void in_own_mapping() {
    void *mapped = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static_cast<void **>(mapped)[77] = block(64);
}

void specific() {
    pthread_key_t key;
    pthread_key_create(&key, nullptr);
    pthread_setspecific(key, block(64));
}

void on_stack() {
    void *volatile here = block(64);
    exit(here == nullptr);
}

void *wait_forever(void *) {
    void *volatile here = block(64);
    pthread_barrier_wait(&barrier);
    pause();
    return here;
}

void on_stack_of_a_thread() {
    pthread_t thread;
    pthread_barrier_init(&barrier, nullptr, 2);
    pthread_create(&thread, nullptr, wait_forever, nullptr);
    pthread_barrier_wait(&barrier);
    pthread_detach(thread);
}

void *free_all(void *blocks) {
    for (int at = 0; at < 1000; at++) free(static_cast<void **>(blocks)[at]);
    return nullptr;
}

void freed() {
    static void *blocks[1000];
    for (int round = 0; round < 3; round++) {
        for (int at = 0; at < 1000; at++) blocks[at] = block(16 + at % 50 * 16);
        pthread_t thread;
        pthread_create(&thread, nullptr, free_all, blocks);
        pthread_join(thread, nullptr);
        for (int at = 0; at < 1000; at++) blocks[at] = block(16 + at % 70 * 512);
        free_all(blocks);
    }
    memset(blocks, 0, sizeof blocks);
}

constexpr int FOR_IDLE = 4000;
void *freed_by_another[FOR_IDLE];

void *allocate_and_sleep(void *) {
    for (void *&each : freed_by_another) each = block(240);
    pthread_barrier_wait(&barrier);
    pause();
    return nullptr;
}

// What is freed of a thread that does nothing more waits for it, without memory. Two blocks between the others are lost.
void freed_for_an_idle_thread() {
    pthread_t thread;
    pthread_barrier_init(&barrier, nullptr, 2);
    pthread_create(&thread, nullptr, allocate_and_sleep, nullptr);
    pthread_barrier_wait(&barrier);
    for (int at = 0; at < FOR_IDLE; at++) {
        if (at != 2000 && at != 3000) free(freed_by_another[at]);
        freed_by_another[at] = nullptr;
    }
    malloc_trim(0);
}

void in_register() {
    void *made = block(64);
#if defined(__x86_64__)
    asm volatile("mov %0, %%rbx\n\txor %0, %0\n\tmov %1, %%eax\n\txor %%edi, %%edi\n\tsyscall" ::"r"(made), "i"(SYS_exit_group) : "rax", "rbx", "rdi");
#elif defined(__aarch64__)
    asm volatile("mov x19, %0\n\tmov %0, xzr\n\tmov x8, %1\n\tmov x0, xzr\n\tsvc 0" ::"r"(made), "i"(SYS_exit_group) : "x0", "x8", "x19");
#endif
}

void in_a_copy() {
    if (fork() == 0) {
        single();
        _exit(0);
    }
    usleep(1000);
}

template <typename Function> Function *of_library(Function *, const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}
#define OF_LIBRARY(function) of_library(static_cast<decltype(&function)>(nullptr), #function)

freestone_heap_t *hardened;
void *kept_in_hardened[1000];

void *free_half(void *) {
    auto *free_in_heap = OF_LIBRARY(freestone_heap_free);
    for (int at = 0; at < 1000; at += 2) free_in_heap(hardened, kept_in_hardened[at]);
    return nullptr;
}

// Freed blocks wait in the heap, also those that another thread frees and those that grew. Lost are a small block, one that it refers to, and a
// large one.
void in_a_hardened_heap() {
    freestone_heap_shape_t shape = {};
    shape.size = sizeof shape;
    shape.harden = "checks";
    hardened = OF_LIBRARY(freestone_heap_new_with)(&shape, nullptr);
    auto *allocate = OF_LIBRARY(freestone_heap_malloc);
    auto *resize = OF_LIBRARY(freestone_heap_realloc);
    auto *free_in_heap = OF_LIBRARY(freestone_heap_free);
    for (int at = 0; at < 1000; at++) kept_in_hardened[at] = allocate(hardened, 16 + at % 50 * 100);
    auto **outer = static_cast<void **>(allocate(hardened, 100));
    *outer = allocate(hardened, 200);
    outer = nullptr;
    seen = allocate(hardened, 200000);
    seen = nullptr;
    free_in_heap(hardened, allocate(hardened, 300000));
    pthread_t thread;
    pthread_create(&thread, nullptr, free_half, nullptr);
    pthread_join(thread, nullptr);
    for (int at = 0; at < 1000; at++) {
        void *&each = kept_in_hardened[at];
        if (at % 4 == 1) free_in_heap(hardened, each);
        each = at % 4 == 3 ? resize(hardened, each, 6000) : nullptr;
    }
}

// Overwrites what the functions before have left on the stack.
__attribute__((noinline)) void clear_stack() {
    char room[1 << 16];
    memset(room, 0, sizeof room);
    asm volatile("" ::"r"(room) : "memory");
}

void killed() {
    single();
    clear_stack();
    raise(SIGKILL);
}

void living() {
    single();
    clear_stack();
    printf("%d\n", getpid());
    fflush(stdout);
    pause();
}

void *wait_for_a_signal(void *) {
    pause();
    return nullptr;
}

void without_first_thread() {
    single();
    printf("%d\n", getpid());
    fflush(stdout);
    pthread_t thread;
    pthread_create(&thread, nullptr, wait_for_a_signal, nullptr);
    pthread_exit(nullptr);
}

volatile sig_atomic_t n_handled;
volatile sig_atomic_t is_asked_to_end;

// Ends with status 7 if it has got every signal that it sent itself.
void raising() {
    signal(SIGUSR1, [](int) { n_handled = n_handled + 1; });
    signal(SIGTERM, [](int) { is_asked_to_end = 1; });
    printf("%d\n", getpid());
    fflush(stdout);
    sig_atomic_t n_sent = 0;
    for (; !is_asked_to_end && n_handled == n_sent; n_sent++) raise(SIGUSR1);
    _exit(n_handled == n_sent ? 7 : 8);
}

struct Case {
    const char *name;
    void (*run)();
};

const Case CASES[] = {
    {"single", single},
    {"lost_list", lost_list},
    {"ring", ring},
    {"long_ring", long_ring},
    {"tree", tree},
    {"shared_tail", shared_tail},
    {"list_into_ring", list_into_ring},
    {"overwritten", overwritten},
    {"many", many},
    {"grown", grown},
    {"aligned", aligned},
    {"large", large},
    {"large_holds_small", large_holds_small},
    {"packed", packed},
    {"array_with_cookie", array_with_cookie},
    {"containers", containers},
    {"by_a_thread", by_a_thread},
    {"on_a_former_stack", on_a_former_stack},
    {"by_a_thread_that_exits", by_a_thread_that_exits},
    {"global", global},
    {"interior", interior},
    {"thread_local_storage", thread_local_storage},
    {"chain", chain},
    {"kept_array", kept_array},
    {"in_large", in_large},
    {"in_own_mapping", in_own_mapping},
    {"specific", specific},
    {"on_stack", on_stack},
    {"on_stack_of_a_thread", on_stack_of_a_thread},
    {"freed", freed},
    {"freed_for_an_idle_thread", freed_for_an_idle_thread},
    {"in_register", in_register},
    {"in_a_copy", in_a_copy},
    {"killed", killed},
    {"living", living},
    {"without_first_thread", without_first_thread},
    {"raising", raising},
    {"in_a_hardened_heap", in_a_hardened_heap},
};

} // namespace

int main(int count, char **arguments) {
    const char *wanted = count > 1 ? arguments[1] : "";
    for (const Case &each : CASES) {
        if (strcmp(each.name, wanted) == 0) {
            void (*volatile run)() = each.run;
            run();
            clear_stack();
            return 0;
        }
    }
    fprintf(stderr, "no case '%s'\n", wanted);
    return 1;
}
