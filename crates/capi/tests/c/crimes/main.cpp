/*
 * Small programs that each commit one heap crime: `crimes CRIME SIZE`; with the lists of `../attacks`, each mounts an attack. The allocator is
 * whatever the process has.
 *
 * `crimes list` prints a line for each crime: name, `counted` or `beside`, the sizes it is committed with, and what it is, between tabs.
 *
 * A crime that is caught ends the program by a signal; the runner sees by the word on standard output whether that was before the deed was
 * done. A program that comes to its end exits with an `Outcome`. Other exit statuses: 2 a wrong call, 3 the library is not at the level that
 * FREESTONE_HARDEN asks for, 4 no memory.
 */
#include "scene.h"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The crime after this one in all lists, or null. */
static const Crime *next_of(const Crime *crime, const Crime *const *&list) {
    crime = crime ? crime + 1 : *list;
    while (crime && !crime->name) crime = *++list;
    return crime;
}

static int print_list() {
    const Crime *const *list = lists;
    for (const Crime *crime = next_of(nullptr, list); crime; crime = next_of(crime, list)) {
        printf("%s\t%s\t%s\t%s\n", crime->name, crime->is_counted ? "counted" : "beside", crime->has_sizes ? "8 4096 262144" : "8",
               crime->what);
    }
    return 0;
}

/* Whether the library, if there is one, is at the level that the environment asks for. */
static bool is_at_level() {
    static const char *const levels[] = {"off", "default", "checks", "full"};
    const char *asked = getenv("FREESTONE_HARDEN");
    auto get = (int (*)(const char *, uint64_t *))dlsym(RTLD_DEFAULT, "freestone_option_get");
    if (!asked || !get) return !asked;
    uint64_t level = 4;
    return get("harden", &level) == 0 && level < 4 && !strcmp(levels[level], asked);
}

int main(int n_words, char **words) {
    if (n_words == 2 && !strcmp(words[1], "list")) return print_list();
    if (n_words != 3) return 2;
    if (!is_at_level()) return 3;
    rlimit no_core = {0, 0}, cpu_seconds = {10, 20};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &cpu_seconds);
    /* For a program that waits for ever. One that runs for ever has its limit above, which does not depend on other processes. */
    alarm(300);
    size = strtoul(words[2], nullptr, 10);
    const Crime *const *list = lists;
    for (const Crime *crime = next_of(nullptr, list); crime; crime = next_of(crime, list)) {
        if (strcmp(crime->name, words[1])) continue;
        move_in();
        Outcome outcome = crime->commit();
        go_on();
        return outcome;
    }
    return 2;
}
