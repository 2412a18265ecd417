/* The plugin of deep_binding.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

char *plugin_makes(size_t length) {
    char *text = malloc(length + 1);
    if (text) {
        memset(text, 'p', length);
        text[length] = 0;
    }
    return text;
}
void plugin_takes(char *text) { free(text); }
void *plugin_malloc(void) { return (void *)malloc; }

/* By a name without a path: it is found only through the folders that this object names. */
void *plugin_loads(const char *name) { return dlopen(name, RTLD_NOW | RTLD_DEEPBIND); }
