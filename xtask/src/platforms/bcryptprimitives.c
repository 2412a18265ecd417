/* The library that Rust's standard library takes random numbers from, which wine before version 9 does not have. */
unsigned char __stdcall SystemFunction036(void *bytes, unsigned long n);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *bytes, unsigned long long n) {
    while (n > 0) {
        unsigned long step = n > 4096 ? 4096 : (unsigned long)n;
        if (!SystemFunction036(bytes, step))
            return 0;
        bytes += step;
        n -= step;
    }
    return 1;
}
