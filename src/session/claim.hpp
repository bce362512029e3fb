// Taking the name of a trace, so that no other process writes to it.
// Called when a spool is made, under the session's lock.
#pragma once
#include <cstddef>

#include "buffer/layout.hpp"
#include "recovery/recover.hpp"
#include "session/trace_name.hpp"

namespace dft::session {

inline constexpr std::size_t kClaimPath = 4096 + 300;

// Names the trace (in head.trace_name) and gives the file `passing`, a spool or a note that stands
// for one, the name that goes with it (`path`): the exact one where it may and can be had,
// otherwise one with a key. `chosen` is the name that this process has had before, or empty. A dead
// predecessor's spool under the name is finished first; a living one's is left alone. False when no
// name can be had. `existing` is what the trace will replace or continue; `finished` counts the
// predecessors.
bool claim(const Place& place, buffer::SpoolHead& head, const char* chosen, const char* passing,
           bool may_be_exact, char (&path)[kClaimPath], Existing& existing,
           recovery::Found& finished) noexcept;

}  // namespace dft::session
