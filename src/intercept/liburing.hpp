// The layer of liburing: its exported functions that make rings, submit requests and wait for
// them. On the program's threads.
#pragma once
#include "intercept/library_layers.hpp"

namespace dft::intercept {

extern LibraryLayer g_liburing;

}  // namespace dft::intercept
