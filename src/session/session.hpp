// The process-wide session: start, stop, fork, exec and exit of recording. Called by the C API and
// the wrappers on the program's threads, at exit, and by a thread's first event.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "session/config.hpp"
#include "session/run_note.hpp"

namespace dft::sink {
class Writer;
struct Watch;
}  // namespace dft::sink

namespace dft::session {

struct Request {
  const char* log_file = nullptr;   // nullptr or empty: from the configuration
  const char* data_dirs = nullptr;  // ':' between them; joined with the configuration's
  int rank = -1;                    // -1: from the launcher's environment
  bool intercept = true;
  bool preloaded = false;  // started by the preload library, not by the program
};

// Starts recording, or takes part in a session that runs already. True while this process records.
bool start(const Request& request) noexcept;
// Undoes one start. The file is complete and readable when it returns; the last stop closes it.
void stop() noexcept;
// Puts everything recorded so far into the file.
void flush() noexcept;
bool active() noexcept;
// The session is of a Python program. One that has recorded nothing leaves no file where the settings
// switch I/O calls off, as these expect; a file that a C program names is there, if only with its
// opening records. And it ends for good with the library, when the interpreter has ended.
void serve_python() noexcept;
// The run that this process belongs to; 0 while nothing is recorded.
std::uint64_t run_id() noexcept;

// MPI has said which rank this process is. Written to the trace, unless the launcher had said so.
void set_rank(int rank) noexcept;

// Before a fork or an exec: writes the run note, so that the next process finds its run; an exec
// also writes what was recorded.
void will_fork() noexcept;
void will_exec() noexcept;
// The same for a program that will not be traced: the trace ends here, also for other threads.
void will_exec_untraced() noexcept;
void exec_failed() noexcept;
// A program was started that cannot be traced.
void note_untraced(const char* name, Untraced why) noexcept;
// Called by the thread that ends the process or the session, before the trace is closed: for spans
// that are open then, in rooms that this one must not include.
extern std::atomic<void (*)()> g_before_end;
// The process leaves without running its destructors.
void at_exit() noexcept;

// While it lives, the process has no thread but the program's own (RAII). For calls that change
// the credentials or the namespaces of a process: a thread of ours would keep the old ones, or
// make the kernel refuse.
class Alone {
 public:
  Alone() noexcept;
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  sink::Writer* writer_ = nullptr;
};

// The process is about to give up root for this user. What was recorded is written, and the files
// are the user's from now on, so that the rest can be.
void will_become(unsigned user) noexcept;

// What another room does at the ends of a trace, with the session locked.
struct Observer {
  void (*opened)();  // a trace has begun, also that of a forked child
  // A trace is about to end. True if records of it did not fit: called again once there is room.
  bool (*closes)();
};
void observe(const Observer& observer) noexcept;
// Has the writer's thread watch something besides (sink/writer.hpp), while the trace lasts.
void watch(const sink::Watch& watch) noexcept;
// Wakes that thread, or starts it.
void ring_writer() noexcept;

// fclose(stderr) was intercepted, usually at exit: a duplicate is kept for the summary.
void stderr_closes() noexcept;
// Nothing is recorded in this process any more.
void abandon() noexcept;

// Time since the epoch in the trace's unit, on the clock of the events; 0 while nothing
// is recorded.
std::uint64_t now() noexcept;
// The same in nanoseconds, whatever the trace's unit is.
std::uint64_t now_ns() noexcept;
// Where this process's trace is written; empty while nothing is recorded.
std::string trace_path();

// The frozen settings; the defaults before the first start.
const Config& config() noexcept;

}  // namespace dft::session
