// The link-map namespaces of a process, as the loader lists them for debuggers: the program's own,
// and since glibc 2.35 each that dlmopen has made. They are never taken away, but may be empty.
#pragma once
#include <link.h>

namespace dft::intercept {

struct Space {
  r_debug common;
  const Space* next;
};
extern "C" const Space dftracer_first_space asm("_r_debug");

// From the first dlmopen on there is more than one.
inline const Space* next_space(const Space* space) noexcept {
  constexpr int kHasNext = 2;
  return dftracer_first_space.common.r_version >= kHasNext ? space->next : nullptr;
}
inline const Space* first_space() noexcept { return &dftracer_first_space; }

}  // namespace dft::intercept
