// The tracer's own voice: one line to stderr, or to the file that the user named.
// Called on slow paths of any room and thread; never on the hot path.
#pragma once

namespace dft {

// Formats like printf, prefixes "dftracer: ", ends the line, writes it in one piece. Long lines are
// cut.
void say(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));
void say_line(const char* line) noexcept;
// nullptr: stderr. The path is copied.
void say_into(const char* path) noexcept;
// The program closes its stream for messages, as many do on their way out: a copy serves for what
// is still to be said.
void keep_stderr() noexcept;
// The writer thread has no stderr of its own: what it says is kept until another thread says it.
void say_later_on_this_thread() noexcept;
void say_what_was_kept() noexcept;
// The reason of a negative errno, without locale or allocation.
const char* reason(int negative_errno) noexcept;

}  // namespace dft
