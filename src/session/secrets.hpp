// Hides passwords, tokens and keys in command lines before they reach a file. The rules are those
// of python/dftracer/_secrets.py, and both are held to tests/data/secrets.json. Called when a
// process starts, and by the wrappers of system() and popen(); on any thread.
#pragma once
#include <string_view>

#include "sink/mmap_buffer.hpp"

namespace dft::session {

// Appends `text` to `out` with `***` in place of what looks like a secret. Arguments are separated
// by NUL; in a text without one by `;`, unless a blank follows. False when there is no memory: then
// `out` may hold a part.
[[nodiscard]] bool mask_secrets(std::string_view text, sink::MmapBuffer& out) noexcept;

}  // namespace dft::session
