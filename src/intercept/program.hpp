// Whether a program that is about to be started can be traced.
#pragma once
#include "session/kin.hpp"

namespace dft::intercept {

// `path` has been accepted by the kernel as a string. `search`: it is a name to be looked for in
// PATH. `environment` is the new program's. The program's own name comes out in `name`.
session::Untraced why_untraced(const char* path, bool search, char* const* environment,
                               char (&name)[56]) noexcept;

// Whether the environment names the preload library. True as well when it cannot be read.
bool is_preloaded(char* const* environment) noexcept;

}  // namespace dft::intercept
