/* Prints the library's version. */
#include "freestone.h"

int main(void) { return puts(freestone_version()) < 0; }
