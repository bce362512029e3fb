// The tracer's own messages: one line each, to stderr or to the log file that the user configured.
// Called on the slow paths of all rooms, on any thread; never on the hot path.
#pragma once

namespace dft {

// Formats like printf, adds the prefix "dftracer: " and a newline, and writes the line with one
// write(). Long lines are truncated.
void say(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));
void say_line(const char* line) noexcept;
// Redirects messages to this file; nullptr means stderr. Copies the path.
void say_into(const char* path) noexcept;
// Duplicates stderr before the program closes it, as many do at exit, so that the final messages
// still reach the user.
void keep_stderr() noexcept;
// The writer thread has its own descriptor table without stderr: its first message is kept until
// another thread prints it.
void say_later_on_this_thread() noexcept;
void say_what_was_kept() noexcept;
// The text for a negative errno, without locale or allocation.
const char* reason(int negative_errno) noexcept;

}  // namespace dft
