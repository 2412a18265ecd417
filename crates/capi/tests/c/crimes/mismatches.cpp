#include "scene.h"
#include <new>

static Outcome done() {
    committed();
    return UNNOTICED;
}

static Outcome new_and_free() {
    release(::operator new(size));
    return done();
}

static Outcome malloc_and_delete() {
    ::operator delete(hide((void *)victim));
    forget_victim();
    return done();
}

static Outcome new_array_and_delete() {
    ::operator delete(hide(::operator new[](size)));
    return done();
}

static Outcome new_and_delete_array() {
    ::operator delete[](hide(::operator new(size)));
    return done();
}

static Outcome delete_of_another_size() {
    ::operator delete(hide(::operator new(size)), hide(size * 2));
    return done();
}

const Crime mismatches[] = {
    {"new_and_free", new_and_free, true, true, "`free` of what `new` allocated"},
    {"malloc_and_delete", malloc_and_delete, true, true, "`delete` of what `malloc` allocated"},
    {"new_array_and_delete", new_array_and_delete, true, true, "`delete` of what `new[]` allocated"},
    {"new_and_delete_array", new_and_delete_array, true, true, "`delete[]` of what `new` allocated"},
    {"delete_of_another_size", delete_of_another_size, true, true, "`delete` with twice the size"},
    {},
};
