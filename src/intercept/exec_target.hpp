// Whether a program that is about to be executed can be traced. Called by the wrappers of exec,
// spawn and system, on the program's threads.
#pragma once
#include "session/run_note.hpp"

namespace dft::intercept {

// `path` has been accepted by the kernel as a string. `search`: it is a name to be looked for in
// PATH. `environment` is the new program's. The program's own name comes out in `name`.
session::Untraced why_untraced(const char* path, bool search, char* const* environment,
                               char (&name)[56]) noexcept;

// What is known of a program before it is executed.
struct Program {
  char name[56];
  session::Untraced why = session::Untraced::kNo;
  // The loader of another C library, such as musl, refuses to start it with our preload library.
  bool must_not_preload = false;
};
Program look_at_program(const char* path, bool search, char* const* environment) noexcept;

// Adds it to the run's list of untraced programs if it cannot be traced. Also in a child of vfork:
// the list is in a file.
void note_program(const Program& program) noexcept;

// Whether the environment names the preload library. True as well when it cannot be read.
bool is_preloaded(char* const* environment) noexcept;

}  // namespace dft::intercept
