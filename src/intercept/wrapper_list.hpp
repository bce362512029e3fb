// Every intercepted function and its wrapper, in the order of the table of calls.
#pragma once
#include <iterator>

#include "intercept/probe.hpp"

namespace dft::intercept {

struct Wrapper {
  const char* symbol;
  const char* shown;
  void (*function)();
  Category category;
};
static_assert(sizeof(Wrapper) == 32 && offsetof(Wrapper, function) == 16);  // src/preload

}  // namespace dft::intercept

// The preload library finds it by this name.
extern "C" const dft::intercept::Wrapper dftracer_wrappers[dft::intercept::kRows];

namespace dft::intercept {

inline constexpr const Wrapper* kWrappers = dftracer_wrappers;

}  // namespace dft::intercept
