// Which file a process writes to, and how it makes sure that nobody else does.
// Called when a session starts and in a forked child at its first event.
#pragma once
#include <cstdint>

#include "buffer/layout.hpp"
#include "buffer/spool.hpp"

namespace dft::session {

// Where the traces of a run go.
struct Place {
  char directory[4096];  // absolute
  char stem[200];        // file name without .pfw and .gz
  bool exact;            // the program named the file: the first process gets just that name
  bool compressed;
};
// Takes a path as a user writes it ("d/t.pfw", "d/t", "t.pfw.gz"). `is_prefix`: it came from the
// environment without .pfw, so every process adds its own key. Makes the directory. 0, or -errno.
int resolve(const char* path, bool is_prefix, bool compressed, Place& place) noexcept;

std::uint64_t random64() noexcept;

// What stands under a trace's name already.
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
Existing inspect(const Place& place, const char* trace_name, std::uint64_t run,
                 std::uint64_t process_key) noexcept;

// Removes what else a finished run of this name has left: the files of its other processes, and one
// with the other ending, where the run before was compressed and this one is not, or the reverse.
void clear_finished(const Place& place, const char* trace_name, const Existing& existing) noexcept;

// "<stem>.pfw[.gz]", or with a key that no other process has.
void exact_name(const Place& place, char (&to)[256]) noexcept;
void keyed_name(const Place& place, std::uint64_t run, std::uint32_t pid, char (&to)[256]) noexcept;
// ".<trace name without .gz>.spool": holding this name is holding the trace's name.
void spool_name(const char* trace_name, char (&to)[256]) noexcept;

// Gives a complete file its final name, which must be free: 0, -EEXIST, or another -errno.
int take_name(const char* from, const char* to) noexcept;

// Where spools are made: next to the trace, or, when that is on a network, in a place of this node.
// `configured` wins. Returns true when it is not the trace's own directory.
bool spool_directory(const Place& place, const char* configured, char (&to)[4096]) noexcept;

}  // namespace dft::session
