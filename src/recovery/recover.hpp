// Recovery: turns spools whose owner is dead into complete trace files.
// Called by the next image of the same process, by a parent's finalize, and by the reading
// commands; any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::recovery {

inline constexpr char kSpoolEnding[] = ".spool";
// First bytes of a spool pointer: a file in the trace's directory that names a spool elsewhere.
inline constexpr char kSpoolPointerStart[] = "dftracer-spool-at ";

// Name of the run note (session/run_note.hpp) of the process with this key.
bool run_note_name(std::uint64_t key, char* to, std::size_t room) noexcept;

struct RecoveryOptions {
  bool force = false;     // include spools whose owner cannot be checked from here
  bool only_run = false;  // only spools of `run`
  std::uint64_t run = 0;  // the run that the run_ counts are for
  bool any_user = false;  // root only: include other users' spools
  // Do not report unreadable spools: they do not concern the caller.
  bool quiet = false;
};

struct RecoveryCounts {
  std::uint64_t spools = 0;
  std::uint64_t recovered = 0;
  std::uint64_t events = 0;  // lines added to traces
  // For `run` only: what its totals lack because the processes died before they reported.
  std::uint64_t run_processes = 0;
  std::uint64_t run_events = 0;
  std::uint64_t run_files = 0;
  std::uint64_t run_lost = 0;
  std::uint64_t alive = 0;
  std::uint64_t unknown = 0;
  std::uint64_t broken = 0;
};

enum class RecoveryOutcome { kRecovered, kAlive, kUnknown, kBroken, kOther, kNothing };

// Recovers one spool, by the base name of its file or spool pointer in `directory`.
RecoveryOutcome recover_spool(const char* directory, const char* name,
                              const RecoveryOptions& options, RecoveryCounts& counts) noexcept;
// Recovers all spools of a directory. Returns 0, or -errno if it cannot be read.
int recover_directory(const char* directory, const RecoveryOptions& options,
                      RecoveryCounts& counts) noexcept;

}  // namespace dft::recovery
