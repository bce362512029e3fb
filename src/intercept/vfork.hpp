// A child of vfork runs in its parent's memory, on its parent's stack and thread-locals, until it
// execs. Check this before changing anything that belongs to the process rather than to its memory.
#pragma once
#include "base/lock.hpp"

namespace dft::intercept {

inline bool in_vfork_child() noexcept {
  if (t_vforked_from == 0) [[likely]]
    return false;
  if (sys::process_id() != t_vforked_from) return true;
  t_vforked_from = 0;  // the parent runs again
  return false;
}

}  // namespace dft::intercept
