#include "scene.h"

const Crime *const lists[] = {double_frees, invalid_frees, requests, stale_uses, bounds, mismatches, nullptr};
