// A new and a delete of 48 bytes, and a new[] and a delete[] of 100, as often as the argument says: what the hot paths take is counted.
#include <cstdlib>
struct Item {
    char bytes[48];
};

// Where a program that is not position-independent takes the address of a function, that is the address of a stub in the program.
void *(*volatile allocate)(size_t);
void (*volatile release)(void *);
void *(*volatile make)(size_t);
void (*volatile unmake)(void *);

int main(int, char **arguments) {
    allocate = malloc, release = free, make = operator new, unmake = operator delete;
    for (long i = atol(arguments[1]); i > 0; i--) {
        Item *item = new Item;
        asm volatile("" : "+r"(item) : : "memory");
        delete item;
        char *bytes = new char[100];
        asm volatile("" : "+r"(bytes) : : "memory");
        delete[] bytes;
    }
    return 0;
}
