/* The TLSF heap from C: what it allocates, what it refuses, and the message of every refusal. */
#include "expect.h"
#include <freestone.h>
#include <stdalign.h>
#include <stdbool.h>

enum { BYTES = 64 << 10 };

static alignas(16) unsigned char memory[2 * BYTES];

static freestone_tlsf_t *made(void) {
    freestone_tlsf_t *heap = freestone_tlsf_new(memory, BYTES, NULL);
    EXPECT(heap);
    return heap;
}

static freestone_tlsf_stats_t stats_of(freestone_tlsf_t *heap) {
    freestone_tlsf_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_tlsf_check(heap) == 0);
    EXPECT(freestone_tlsf_stats(heap, &stats) == 0 && stats.size == sizeof stats);
    EXPECT(stats.region_bytes == stats.used_bytes + stats.free_bytes + stats.overhead_bytes);
    return stats;
}

/* The call is refused with the expected code, about this block, and the heap is unchanged. */
#define REFUSED(heap, call, expected, about) \
    do { \
        freestone_tlsf_stats_t before_ = stats_of(heap); \
        call; \
        freestone_tlsf_stats_t after_ = stats_of(heap); \
        freestone_error_t error_ = freestone_tlsf_last_error(heap); \
        EXPECT(memcmp(&before_, &after_, sizeof before_) == 0); \
        EXPECT(error_.code == (expected) && error_.block == (const void *)(about)); \
    } while (0)

static void random_blocks(void) {
    freestone_tlsf_t *heap = made();
    struct { unsigned char *block; size_t size, align; unsigned char mark; } slots[64] = {0};
    uint64_t random = 88172645463325252u;
    for (int step = 0; step < 20000; step++) {
        uint64_t bits = next_random(&random);
        size_t at = bits % 64, size = 1 + (bits >> 8) % 1500;
        if (slots[at].block && bits & 1 << 20) {
            unsigned char *moved = freestone_tlsf_aligned_realloc(heap, slots[at].block, slots[at].align, size);
            if (moved) {
                for (size_t i = 0; i < size && i < slots[at].size; i++) EXPECT(moved[i] == slots[at].mark);
                slots[at].block = moved, slots[at].size = size;
                memset(moved, slots[at].mark, size);
            }
        } else if (slots[at].block) {
            for (size_t i = 0; i < slots[at].size; i++) EXPECT(slots[at].block[i] == slots[at].mark);
            EXPECT(freestone_tlsf_free(heap, slots[at].block) == 0);
            slots[at].block = NULL;
        } else {
            size_t align = (size_t)1 << (bits >> 32) % 9;
            unsigned char *block = freestone_tlsf_aligned_alloc(heap, align, size);
            if (block) {
                EXPECT((uintptr_t)block % align == 0 && freestone_tlsf_usable_size(heap, block) >= size);
                slots[at].block = block, slots[at].size = size, slots[at].align = align;
                slots[at].mark = (unsigned char)step;
                memset(block, slots[at].mark, size);
            }
        }
        if (step % 64 == 0) stats_of(heap);
    }
    for (size_t at = 0; at < 64; at++) EXPECT(freestone_tlsf_free(heap, slots[at].block) == 0);
    EXPECT(stats_of(heap).n_used_blocks == 0 && stats_of(heap).n_free_blocks == 1);
    freestone_tlsf_delete(heap);
}

static int count(const freestone_tlsf_block_t *block, void *context) {
    size_t *counts = context;
    counts[block->used != 0]++;
    return counts[0] + counts[1] == 3 && counts[2] ? 7 : 0;
}

static void walk(void) {
    freestone_tlsf_t *heap = made();
    void *blocks[4];
    for (int i = 0; i < 4; i++) EXPECT((blocks[i] = freestone_tlsf_malloc(heap, 100)));
    EXPECT(freestone_tlsf_free(heap, blocks[1]) == 0);
    size_t all[3] = {0, 0, 0}, some[3] = {0, 0, 1};
    EXPECT(freestone_tlsf_walk(heap, count, all) == 0 && all[0] == 2 && all[1] == 3);
    EXPECT(freestone_tlsf_walk(heap, count, some) == 7 && some[0] + some[1] == 3);
}

static void regions(void) {
    static const struct { void *memory; size_t bytes; freestone_error_t error; } unsuitable[] = {
        {NULL, BYTES, {.code = FREESTONE_TLSF_REGION_MISALIGNED, .value = BYTES}},
        {memory + 8, BYTES, {.code = FREESTONE_TLSF_REGION_MISALIGNED, .value = BYTES}},
        {memory, BYTES + 8, {.code = FREESTONE_TLSF_REGION_MISALIGNED, .value = BYTES + 8}},
        {memory, 1024, {.code = FREESTONE_TLSF_REGION_TOO_SMALL, .value = 1024}},
    };
    for (size_t i = 0; i < sizeof unsuitable / sizeof *unsuitable; i++) {
        freestone_error_t error = {0};
        EXPECT(!freestone_tlsf_new(unsuitable[i].memory, unsuitable[i].bytes, &error));
        EXPECT(error.code == unsuitable[i].error.code && error.value == unsuitable[i].error.value);
        bool is_misaligned = error.code == FREESTONE_TLSF_REGION_MISALIGNED;
        EXPECT(error.address == (is_misaligned ? unsuitable[i].memory : NULL));
        EXPECT(is_misaligned ? error.limit == 0 : error.limit > 1024 && error.limit <= FREESTONE_TLSF_CONTROL_BYTES + 48);
        EXPECT(!freestone_tlsf_new(unsuitable[i].memory, unsuitable[i].bytes, NULL));
    }
    freestone_error_t too_large = {0};
    unsigned char contents[256];
    memcpy(contents, memory, sizeof contents);
    EXPECT(!freestone_tlsf_new(memory, HIDE(SIZE_MAX / 32 * 32), &too_large));
    EXPECT(too_large.code == FREESTONE_TLSF_REGION_TOO_LARGE && too_large.value > too_large.limit);
    EXPECT(memcmp(contents, memory, sizeof contents) == 0);
    EXPECT(freestone_tlsf_new(memory, FREESTONE_TLSF_CONTROL_BYTES + 48, NULL));

    freestone_tlsf_t *heap = made();
    unsigned char *behind = memory + BYTES;
    REFUSED(heap, EXPECT(freestone_tlsf_add_region(heap, memory + 32768, 1024) != 0), FREESTONE_TLSF_REGION_OVERLAPS,
            freestone_tlsf_last_error(heap).block);
    REFUSED(heap, EXPECT(freestone_tlsf_add_region(heap, behind + 4, 64) != 0), FREESTONE_TLSF_REGION_MISALIGNED, 0);
    REFUSED(heap, EXPECT(freestone_tlsf_add_region(heap, behind, 32) != 0), FREESTONE_TLSF_REGION_TOO_SMALL, 0);
    REFUSED(heap, EXPECT(freestone_tlsf_grow_region(heap, behind, 64) != 0), FREESTONE_TLSF_NO_SUCH_REGION, 0);
    REFUSED(heap, EXPECT(freestone_tlsf_remove_region(heap, behind) != 0), FREESTONE_TLSF_NO_SUCH_REGION, 0);

    uint64_t before = stats_of(heap).region_bytes;
    EXPECT(freestone_tlsf_grow_region(heap, memory, 4096) == 0 && stats_of(heap).region_bytes == before + 4096);
    EXPECT(stats_of(heap).n_free_blocks == 1);
    unsigned char *second = behind + 8192;
    EXPECT(freestone_tlsf_add_region(heap, second, 4096) == 0 && stats_of(heap).n_free_blocks == 2);
    void *large = freestone_tlsf_malloc(heap, stats_of(heap).largest_free_bytes);
    void *block = freestone_tlsf_malloc(heap, 100);
    EXPECT(large && block);
    REFUSED(heap, EXPECT(freestone_tlsf_remove_region(heap, second) != 0), FREESTONE_TLSF_REGION_IN_USE, block);
    EXPECT(freestone_tlsf_free(heap, block) == 0 && freestone_tlsf_remove_region(heap, second) == 0);
    EXPECT(freestone_tlsf_free(heap, large) == 0 && stats_of(heap).n_free_blocks == 1);
}

/* The heap's control structure is in no region, whichever memory is offered and whichever regions there are. */
static void own_memory(void) {
    unsigned char *own = memory + BYTES, *before = own - 4096;
    freestone_tlsf_t *heap = freestone_tlsf_new(own, BYTES, NULL);
    EXPECT(heap);
    const struct { unsigned char *start; size_t bytes; } offered[] = {
        {own, 8192}, {own + 1024, 1024}, {own - 1024, 1040}, {before, 4096 + BYTES}, {own, BYTES}, {own - 16, SIZE_MAX - 15},
    };
    EXPECT(freestone_tlsf_add_region(heap, before - 4096, 2048) == 0);
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        if (is_alone) EXPECT(freestone_tlsf_remove_region(heap, own) == 0);
        for (size_t i = 0; i < sizeof offered / sizeof *offered; i++)
            REFUSED(heap, EXPECT(freestone_tlsf_add_region(heap, offered[i].start, offered[i].bytes) != 0), FREESTONE_TLSF_REGION_OVERLAPS, own);
        EXPECT(freestone_tlsf_add_region(heap, before, 2048) == 0);
        REFUSED(heap, EXPECT(freestone_tlsf_grow_region(heap, before, 2064) != 0), FREESTONE_TLSF_REGION_OVERLAPS, own);
        REFUSED(heap, EXPECT(freestone_tlsf_grow_region(heap, before, BYTES) != 0), FREESTONE_TLSF_REGION_OVERLAPS, own);
        EXPECT(freestone_tlsf_grow_region(heap, before, 2048) == 0 && freestone_tlsf_remove_region(heap, before) == 0);
    }
    enum { REST = BYTES - FREESTONE_TLSF_CONTROL_BYTES };
    EXPECT(freestone_tlsf_add_region(heap, own + FREESTONE_TLSF_CONTROL_BYTES, REST) == 0 && stats_of(heap).region_bytes == REST + 2048);
}

static void refusals(void) {
    freestone_tlsf_t *heap = made();
    char *first = freestone_tlsf_malloc(heap, 104), *second = freestone_tlsf_malloc(heap, 104);
    EXPECT(first && second && freestone_tlsf_last_error(heap).code == FREESTONE_OK);
    memset(first, 0, 104);
    static const struct { size_t size; freestone_code_t code; } sizes[] = {
        {0, FREESTONE_TLSF_ZERO_SIZE},           {BYTES, FREESTONE_TLSF_EXHAUSTED},
        {SIZE_MAX, FREESTONE_TLSF_TOO_LARGE},    {SIZE_MAX - 7, FREESTONE_TLSF_TOO_LARGE},
        {SIZE_MAX - 31, FREESTONE_TLSF_TOO_LARGE}, {PTRDIFF_MAX, FREESTONE_TLSF_TOO_LARGE},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        errno = 77;
        REFUSED(heap, EXPECT(!freestone_tlsf_malloc(heap, HIDE(sizes[i].size))), sizes[i].code, 0);
        REFUSED(heap, EXPECT(!freestone_tlsf_calloc(heap, 1, HIDE(sizes[i].size))), sizes[i].code, 0);
        REFUSED(heap, EXPECT(!freestone_tlsf_realloc(heap, first, HIDE(sizes[i].size))), sizes[i].code, 0);
        EXPECT(errno == 77);
    }
    REFUSED(heap, EXPECT(!freestone_tlsf_calloc(heap, HIDE(SIZE_MAX / 2), 3)), FREESTONE_TLSF_TOO_LARGE, 0);
    char *zeros = freestone_tlsf_calloc(heap, 10, 10);
    for (int i = 0; i < 100; i++) EXPECT(zeros[i] == 0);
    EXPECT(freestone_tlsf_free(heap, zeros) == FREESTONE_OK);
    static const size_t aligns[] = {0, 3, 24, SIZE_MAX};
    for (size_t i = 0; i < 4; i++) {
        REFUSED(heap, EXPECT(!freestone_tlsf_aligned_alloc(heap, HIDE(aligns[i]), 8)), FREESTONE_TLSF_BAD_ALIGNMENT, 0);
    }
    char outside[64] __attribute__((aligned(16))) = {0};
    REFUSED(heap, EXPECT(freestone_tlsf_free(heap, HIDE(outside + 16))), FREESTONE_TLSF_FOREIGN, 0);
    REFUSED(heap, EXPECT(freestone_tlsf_free(heap, first + 16)), FREESTONE_TLSF_INTERIOR, first);
    EXPECT(freestone_tlsf_usable_size(heap, first + 8) == 0 && freestone_tlsf_usable_size(heap, NULL) == 0 && freestone_tlsf_free(heap, NULL) == 0);

    static alignas(16) unsigned char another_memory[BYTES];
    freestone_tlsf_t *another = freestone_tlsf_new(another_memory, BYTES, NULL);
    EXPECT(another);
    REFUSED(another, EXPECT(freestone_tlsf_free(another, first)), FREESTONE_TLSF_FOREIGN, 0);

    EXPECT(freestone_tlsf_free(heap, first) == 0);
    REFUSED(heap, EXPECT(freestone_tlsf_free(heap, first)), FREESTONE_TLSF_DOUBLE_FREE, first);

    first = freestone_tlsf_malloc(heap, 104);
    char kept = first[104];
    first[104] = 0;
    EXPECT(freestone_tlsf_free(heap, second) == FREESTONE_TLSF_OVERRUN);
    EXPECT(freestone_tlsf_last_error(heap).block == first);
    EXPECT(freestone_tlsf_check(heap) == FREESTONE_TLSF_OVERRUN);
    first[104] = kept;
    EXPECT(freestone_tlsf_check(heap) == 0 && freestone_tlsf_free(heap, second) == 0);

    freestone_error_t error;
    char text[64];
    EXPECT(!freestone_tlsf_new(NULL, BYTES, &error) && error.code == FREESTONE_TLSF_REGION_MISALIGNED);
    freestone_error_text(&error, text, sizeof text);
    EXPECT(strcmp(text, "the region is null: pass memory") == 0);

    freestone_tlsf_stats_t small = {.size = 1};
    EXPECT(freestone_tlsf_stats(heap, NULL) == FREESTONE_BAD_STRUCT && freestone_tlsf_stats(heap, &small) == FREESTONE_BAD_STRUCT);
    /* An older program's structure ends behind `used_bytes`. */
    freestone_tlsf_stats_t old = {.size = offsetof(freestone_tlsf_stats_t, n_free_blocks), .n_free_blocks = 77};
    EXPECT(freestone_tlsf_stats(heap, &old) == 0 && old.region_bytes > BYTES / 2 && old.n_free_blocks == 77);
    /* A newer program's has members that this library does not know. */
    struct { freestone_tlsf_stats_t known; uint64_t more; } new = {.known.size = sizeof new, .more = 77};
    EXPECT(freestone_tlsf_stats(heap, &new.known) == 0 && new.known.size == sizeof new.known && new.more == 77);
    freestone_tlsf_delete(heap);
    EXPECT(!freestone_tlsf_malloc(heap, 8) && freestone_tlsf_free(heap, first) == FREESTONE_TLSF_FOREIGN);
    freestone_tlsf_delete(NULL);
}

/* Every code has a message of its own that names its numbers; other numbers are no error. */
static void sentences(void) {
    char seen[2][256] = {"", ""};
    for (int code = -1; code <= 320; code++) {
        freestone_error_t error = {.code = code, .address = (void *)0xabc0, .block = (void *)0xabc0, .value = 4711, .limit = 4711};
        bool is_code = (code >= FREESTONE_TLSF_REGION_MISALIGNED && code <= FREESTONE_TLSF_REGION_TOO_LOW) ||
                       (code >= FREESTONE_POOL_ZERO_BLOCK_SIZE && code <= FREESTONE_POOL_NO_ATOMICS) ||
                       (code >= FREESTONE_NO_MEMORY && code <= FREESTONE_NOT_WRITTEN) || code == FREESTONE_BAD_STRUCT;
        char *text = seen[code & 1];
        size_t length = freestone_error_text(&error, text, sizeof *seen);
        EXPECT(length == strlen(text) && is_code == (strncmp(text, "no error", 8) != 0));
        EXPECT(!is_code || (length > 20 && strcmp(seen[0], seen[1]) != 0));
        bool has_numbers = code != FREESTONE_TLSF_ZERO_SIZE && code != FREESTONE_POOL_ZERO_BLOCK_SIZE &&
                           code != FREESTONE_POOL_ZERO_COUNT && code != FREESTONE_POOL_NOT_SHARED &&
                           code != FREESTONE_POOL_NO_ATOMICS && (code < FREESTONE_NO_SUCH_LEVEL || code > FREESTONE_NO_SUCH_SNAPSHOT);
        EXPECT(!is_code || !has_numbers || strstr(text, "4711") || strstr(text, "0xabc0"));

        char cut[8] = "-------";
        EXPECT(freestone_error_text(&error, NULL, 0) == length && freestone_error_text(&error, cut, 4) == length);
        EXPECT(strncmp(cut, text, 3) == 0 && cut[3] == 0 && cut[4] == '-');
    }
}

int main(int count_of_words, char **words) {
    EXPECT(count_of_words == 2);
    if (!strcmp(words[1], "random")) random_blocks();
    else if (!strcmp(words[1], "walk")) walk();
    else if (!strcmp(words[1], "regions")) regions();
    else if (!strcmp(words[1], "own_memory")) own_memory();
    else if (!strcmp(words[1], "refusals")) refusals();
    else if (!strcmp(words[1], "sentences")) sentences();
    else return 2;
    return 0;
}
