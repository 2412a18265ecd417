/*
 * An audio engine in a fixed 256 KiB: the audio callback allocates and frees voices and delay lines from a TLSF heap. It never waits for
 * the system, and allocating and freeing take a bounded number of instructions. Two steps take time that depends on the number of blocks: the
 * last resort of a request that neither a list above its own nor the top can serve, and the search for what is wrong with a block that is refused.
 *
 *     cc audio_engine.c $(pkg-config --cflags --libs freestone) -lm
 */
#include <freestone.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum { RATE = 48000, FRAMES = 64, CALLBACKS = 3000 };

static alignas(16) unsigned char memory[256 << 10];

/* A decaying tone with an echo. Aligned to 64, so that a vector unit may read the delay line. */
typedef struct voice {
    struct voice *next;
    double phase, step, loudness;
    size_t delay, at;
    float line[];
} voice_t;

static freestone_tlsf_t *heap;
static voice_t *voices;

/* Starts a note. Without memory for it, the note is not played and the others continue. */
static int note_on(int number) {
    size_t delay = 200 + (size_t)(number * 7919 % 2400);
    voice_t *voice = freestone_tlsf_aligned_alloc(heap, 64, sizeof *voice + delay * sizeof(float));
    if (!voice) {
        return 0;
    }
    memset(voice, 0, sizeof *voice + delay * sizeof(float));
    voice->step = 440.0 * pow(2.0, (number % 24 - 12) / 12.0) / RATE;
    voice->loudness = 0.2;
    voice->delay = delay;
    voice->next = voices;
    voices = voice;
    return 1;
}

static void complain(const char *what, const freestone_error_t *error) {
    char text[256];
    freestone_error_text(error, text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
}

/* The sound card calls this for every 64 frames. Returns how many voices ended. */
static int callback(float *out) {
    int ended = 0;
    memset(out, 0, FRAMES * sizeof *out);
    for (voice_t **link = &voices; *link;) {
        voice_t *voice = *link;
        for (int i = 0; i < FRAMES; i++) {
            double dry = voice->loudness * sin(voice->phase * 6.283185307179586);
            float *echo = &voice->line[voice->at];
            voice->at = (voice->at + 1) % voice->delay;
            out[i] += (float)dry + 0.4f * *echo;
            *echo = (float)dry + 0.4f * *echo;
            voice->phase += voice->step;
            voice->loudness *= 0.9996;
        }
        if (voice->loudness < 0.001) {
            *link = voice->next;
            if (freestone_tlsf_free(heap, voice) != FREESTONE_OK) {
                freestone_error_t error = freestone_tlsf_last_error(heap);
                complain("free", &error);
            }
            ended++;
        } else {
            link = &voice->next;
        }
    }
    return ended;
}

static int leak(const freestone_tlsf_block_t *block, void *context) {
    (void)context;
    if (block->used) {
        printf("leak: %zu bytes at %p\n", block->usable_bytes, block->address);
    }
    return 0;
}

int main(void) {
    freestone_error_t error;
    heap = freestone_tlsf_new(memory, sizeof memory, &error);
    if (!heap) {
        complain("no heap", &error);
        return 1;
    }
    float out[FRAMES];
    double loudest = 0;
    int played = 0, ended = 0;
    uint64_t most_used = 0;
    for (int turn = 0; turn < CALLBACKS; turn++) {
        if (turn % 10 == 0 && turn < 2400) {
            played += note_on(turn / 10);
        }
        ended += callback(out);
        for (int i = 0; i < FRAMES; i++) {
            loudest = fmax(loudest, fabs(out[i]));
        }
        if (turn % 100 == 0) {
            freestone_tlsf_stats_t stats = {.size = sizeof stats};
            freestone_tlsf_stats(heap, &stats);
            most_used = stats.used_bytes > most_used ? stats.used_bytes : most_used;
        }
    }
    freestone_tlsf_stats_t stats = {.size = sizeof stats};
    freestone_tlsf_stats(heap, &stats);
    freestone_tlsf_walk(heap, leak, NULL);
    printf("%d notes played, %d ended, loudest sample %.2f\n", played, ended, loudest);
    printf("%llu of %llu bytes used at most, %llu blocks left, %llu free block\n", (unsigned long long)most_used,
           (unsigned long long)stats.region_bytes, (unsigned long long)stats.n_used_blocks,
           (unsigned long long)stats.n_free_blocks);
    freestone_tlsf_delete(heap);
    return 0;
}
