// Which file a process writes to, and how it makes sure that no other process does.
// Called when a session starts and in a forked child at its first event.
#pragma once
#include <cstdint>

#include "buffer/layout.hpp"
#include "buffer/spool.hpp"
#include "recovery/recover.hpp"

namespace dft::session {

// Where the traces of a run go.
struct TracePlace {
  char directory[4096];  // absolute
  char stem[200];        // file name without .pfw and .gz
  bool exact;            // the program named the file: the first process gets just that name
  bool compressed;
};
// Takes a path as a user writes it ("d/t.pfw", "d/t", "t.pfw.gz"). `is_prefix`: it came from the
// environment without .pfw, so every process adds its own key. Makes the directory. 0, or -errno.
int resolve(const char* path, bool is_prefix, bool compressed, TracePlace& place) noexcept;

std::uint64_t random64() noexcept;

// What already exists under a trace's name.
struct Existing {
  enum class What {
    kNothing,
    kFinished,     // of another run: is replaced
    kSameRun,      // of another process of this run
    kSameProcess,  // of this process, before an exec or a restart: is continued
    kForeign,      // not a trace: is left alone
  } what;
  std::uint64_t inode;
  std::uint64_t size;
  std::uint64_t run;
};
Existing inspect(const TracePlace& place, const char* trace_name, std::uint64_t run,
                 std::uint64_t process_key) noexcept;

// Removes what else a finished run of this name has left: the files of its other processes, and one
// with the other ending, where the run before was compressed and this one is not, or the reverse.
void clear_finished(const TracePlace& place, const char* trace_name,
                    const Existing& existing) noexcept;

// "<stem>.pfw[.gz]", or with a key that no other process has.
void exact_name(const TracePlace& place, char (&to)[256]) noexcept;
void keyed_name(const TracePlace& place, std::uint64_t run, std::uint32_t pid,
                char (&to)[256]) noexcept;
// ".<trace name without .gz>.spool": the process that holds this name owns the trace's name.
void spool_name(const char* trace_name, char (&to)[256]) noexcept;

// Gives a complete file its final name, which must be free: 0, -EEXIST, or another -errno.
int take_name(const char* from, const char* to) noexcept;

// Where spools are made: beside the trace, or, if that is on a network file system, on this node.
// `configured` wins. Returns true when it is not the trace's own directory.
bool spool_directory(const TracePlace& place, const char* configured, char (&to)[4096]) noexcept;

inline constexpr std::size_t kClaimPath = 4096 + 300;

// Chooses the trace's name (head.trace_name) and renames the file `passing`, a spool or a spool
// pointer, to the name that goes with it (`path`), so that no other process writes to the trace.
// Takes the exact name where it may and can be had, otherwise one with a key. `chosen` is the name
// that this process has had before, or empty. The spool of a dead process under the name is
// recovered first; that of a living one is left alone. False if no name can be had. `existing` is
// what the trace will replace or continue; `recovered` counts the dead.
bool claim(const TracePlace& place, buffer::SpoolHead& head, const char* chosen,
           const char* passing, bool may_be_exact, char (&path)[kClaimPath], Existing& existing,
           recovery::RecoveryCounts& recovered) noexcept;

}  // namespace dft::session
