// Finishing what the dead have left: spools whose owner is gone become whole trace files.
// Called by the next image of the same process, by a parent's finalize, and by reading commands.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::recovery {

inline constexpr char kSpoolEnding[] = ".spool";
// First bytes of a note that stands in the trace's directory for a spool that is elsewhere.
inline constexpr char kSpoolPointerStart[] = "dftracer-spool-at ";

// The note by which a process is found by its children (session/run_note.hpp), made from its key.
bool word_name(std::uint64_t key, char* to, std::size_t room) noexcept;

struct Wanted {
  bool force = false;     // also those whose owner cannot be checked from here
  bool only_run = false;  // only spools of this run
  std::uint64_t run = 0;  // whose totals are wanted
  bool any_user = false;  // root only: also those of other users
  bool quiet =
      false;  // says nothing about spools that cannot be read: they are not the caller's business
};

struct Found {
  std::uint64_t spools = 0;
  std::uint64_t recovered = 0;
  std::uint64_t events = 0;  // lines that were added to traces
  // Of the wanted run: what its totals did not hold, because the dead could not report it.
  std::uint64_t run_processes = 0;
  std::uint64_t run_events = 0;
  std::uint64_t run_files = 0;
  std::uint64_t run_lost = 0;
  std::uint64_t alive = 0;
  std::uint64_t unknown = 0;
  std::uint64_t broken = 0;
};

enum class Outcome { kRecovered, kAlive, kUnknown, kBroken, kOther, kNothing };

// One spool, by the base name of its file or note in `directory`.
Outcome recover_spool(const char* directory, const char* name, const Wanted& wanted,
                      Found& found) noexcept;
// All spools of a directory; 0 or -errno if it cannot be read.
int recover_directory(const char* directory, const Wanted& wanted, Found& found) noexcept;

}  // namespace dft::recovery
