// Run notes: how the processes of a run find each other without environment variables. A process
// that is about to fork or exec writes a note under its own key; every process looks for its own
// note, then for an ancestor's. The note of the run's first process also adds up the run's totals.
// Under the session's lock.
#pragma once
#include <atomic>
#include <cstdint>

#include "buffer/layout.hpp"

namespace dft::session {

struct RunTotals {
  std::uint64_t processes;
  std::uint64_t events;
  std::uint64_t files;
  std::uint64_t calls;
  std::uint64_t filtered;
  std::uint64_t lost;
  std::uint64_t ring_requests;  // of io_uring that only the kernel saw
};

// A program that was started and could not be traced.
enum class Untraced : std::uint32_t {
  kNo,
  kStatic,
  kOtherArchitecture,
  kSetUser,
  kNotPreloaded,
  kOtherLibc,
  kGo  // loads the library, and makes most of its system calls without it
};
const char* describe(Untraced why) noexcept;
// Whether the trace goes on in the program: what a Go program does through libc is recorded.
inline bool is_partly_traced(Untraced why) noexcept { return why == Untraced::kGo; }

struct UntracedProgram {
  std::atomic<std::uint32_t> count;
  std::uint32_t why;
  char name[56];
};
inline constexpr std::size_t kMostUntraced = 16;

// The note, as it is on disk and in memory.
struct RunNote {
  char magic[8];
  std::uint64_t run;
  std::uint64_t first;   // key of the run's first process
  char trace_name[256];  // of the process that wrote the note
  std::atomic<std::uint64_t> amounts[7];
  std::atomic<std::uint32_t> lock;
  std::uint32_t reserved;
  UntracedProgram untraced[kMostUntraced];
};

struct RunIdentity {
  std::uint64_t run;
  std::uint64_t first;
  char trace_name[256];  // of this same process, before an exec; else empty
};
// Looks for this process's own note, then for its ancestors'.
bool find_run(const char* directory, const buffer::Owner& self, RunIdentity& kin) noexcept;

// Writes the note of this process; true if it is there.
bool write_run_note(const char* directory, std::uint64_t key, const RunIdentity& kin) noexcept;
void remove_run_note(const char* directory, std::uint64_t key) noexcept;

// Adds to the run's totals; does nothing if its first process is gone.
void add_totals(const char* directory, std::uint64_t first, const RunTotals& amounts) noexcept;
void add_untraced(const char* directory, std::uint64_t first, const char* name,
                  Untraced why) noexcept;
// For the first process: what the others have added, and a description of the untraced programs.
void read_totals(const char* directory, std::uint64_t first, RunTotals& amounts, char* untraced,
                 std::size_t room) noexcept;

}  // namespace dft::session
