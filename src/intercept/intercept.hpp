// Interception as a whole: when it begins and ends. Called by the C API around a session, and by
// the preload library's constructor.
#pragma once

namespace dft::intercept {

// After a session has started: calls are recorded from now on, as its settings say. Without the
// preload library the import tables of all loaded objects are rewritten.
void begin() noexcept;
// The session has stopped: undoes begin().
void end() noexcept;
// True once: for the preload library's constructor, or for the first call before it.
bool is_first_to_begin() noexcept;
// Whether the preload library is loaded.
bool is_preload() noexcept;

}  // namespace dft::intercept
