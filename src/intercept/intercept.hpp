// Interception as a whole: when it begins and ends.
// Called by the bindings around a session, and by the preload library's constructor.
#pragma once

namespace dft::intercept {

// After a session has started: calls are recorded from now on, as its settings say. Without the
// preload library the import tables of all loaded objects are rewritten.
void begin() noexcept;
// The session has stopped: everything is as it was.
void end() noexcept;
// The preload library's constructor and the first call before it both ask to begin; once is enough.
bool is_first_to_begin() noexcept;
// The preload library is there.
bool is_preload() noexcept;

}  // namespace dft::intercept
