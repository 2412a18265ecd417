/*
 * A server's table of connections: a fixed number of them, in memory that is there before the first one comes. Opening and closing take
 * the same time whatever happened before, a connection too many is turned away instead of eating the machine's memory, and a
 * connection closed twice is found where it happens.
 */
#include <freestone.h>
#include <stdio.h>

typedef struct connection {
    int socket;
    unsigned char peer[4];
    size_t bytes_sent;
    struct connection *previous, *next;
} connection_t;

enum { MOST_CONNECTIONS = 8 };

/* Room for the pool and its blocks: nothing is taken from the heap. */
static _Alignas(16) unsigned char memory[2048];

static freestone_pool_t *open_table(void) {
    freestone_pool_shape_t shape = {.size = sizeof shape, .block_size = sizeof(connection_t), .count = MOST_CONNECTIONS};
    freestone_error_t error;
    freestone_pool_t *table = freestone_pool_new_at(memory, sizeof memory, &shape, &error);
    if (!table) {
        char text[200];
        freestone_error_text(&error, text, sizeof text);
        fprintf(stderr, "no table: %s\n", text);
    }
    return table;
}

static connection_t *open_connection(freestone_pool_t *table, int socket) {
    connection_t *connection = freestone_pool_calloc(table);
    if (connection) {
        connection->socket = socket;
    }
    return connection;
}

int main(void) {
    freestone_pool_t *table = open_table();
    if (!table) {
        return 1;
    }
    connection_t *open[MOST_CONNECTIONS];
    for (int i = 0; i < MOST_CONNECTIONS; i++) {
        open[i] = open_connection(table, 100 + i);
        if (!open[i]) {
            return 1;
        }
        open[i]->bytes_sent = 1000;
    }
    if (!open_connection(table, 200)) {
        printf("%d connections open, the %dth is turned away\n", MOST_CONNECTIONS, MOST_CONNECTIONS + 1);
    }

    /* `volatile`, because compilers warn of what this shows. */
    connection_t *volatile closed = open[3];
    freestone_pool_free(table, closed);
    if (freestone_pool_free(table, closed) != FREESTONE_OK) {
        freestone_error_t error = freestone_pool_last_error(table);
        char text[200];
        freestone_error_text(&error, text, sizeof text);
        printf("connection 3 closed; closing it again: %s\n", text);
    }

    open[3] = open_connection(table, 300);
    if (!open[3]) {
        return 1;
    }
    printf("a new connection takes its place: %zu bytes sent\n", open[3]->bytes_sent);

    for (int i = 0; i < MOST_CONNECTIONS; i++) {
        freestone_pool_free(table, open[i]);
    }
    if (freestone_pool_delete(table) == FREESTONE_OK) {
        printf("all closed, the table is gone\n");
    }
    return 0;
}
