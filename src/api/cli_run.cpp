// The core's part of `dftracer run`: the command is the first process of the run, so that every
// process that it starts finds its run note and adds to its totals. Called from
// python/dftracer/_libcore.py, in a process that records nothing itself.
#include <stdlib.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "api/export.hpp"
#include "base/message.hpp"
#include "base/signals.hpp"
#include "base/syscalls.hpp"
#include "format/hash.hpp"
#include "intercept/exec_target.hpp"
#include "record/clock.hpp"
#include "recovery/owner.hpp"
#include "recovery/recover.hpp"
#include "session/config.hpp"
#include "session/run_note.hpp"
#include "session/trace_name.hpp"

extern char** environ;

namespace {

namespace session = dft::session;
namespace recovery = dft::recovery;

// The layouts of _libcore.py. Both sides are in one package, so neither has a version.
struct Run {
  std::uint64_t run;
  std::uint64_t key;        // of this process: the run's first, unless it is a guest
  std::uint64_t recovered;  // processes whose traces were recovered here, and what was in them
  std::uint64_t recovered_events;
  std::uint64_t recovered_files;
  std::uint64_t recovered_lost;
  std::uint32_t guest;     // 1: inside another run that records into the same directory
  std::uint32_t untraced;  // why the program cannot be traced, 0 if it can
  char directory[4096];    // of the traces
  char spools[4096];       // of spools and notes
  char why[64];            // `untraced` in words
};

struct Sums {
  std::uint64_t processes;
  std::uint64_t events;
  std::uint64_t files;
  std::uint64_t calls;
  std::uint64_t filtered;
  std::uint64_t lost;
  std::uint64_t recovered;  // of the processes, finished here
  std::uint64_t alive;
  std::uint64_t broken;
  std::uint64_t ring_requests;  // of io_uring that only the kernel saw
  char untraced[1024];
};

session::Environment own_environment() { return {environ, ::getauxval(AT_SECURE) != 0}; }

std::uint64_t choose_run(const session::Config& config) {
  if (!config.run_id.empty()) return ::strtoull(config.run_id.c_str(), nullptr, 16);
  const std::string job = session::job_from_environment(own_environment());
  return job.empty() ? session::random64() : dft::format::hash16(job);
}

}  // namespace

// The id of the job that a launcher has started this process in; 0 without one.
DFT_EXPORT std::uint64_t dftracer_run_job() {
  const std::string job = session::job_from_environment(own_environment());
  return job.empty() ? 0 : dft::format::hash16(job);
}

DFT_EXPORT int dftracer_run_rank() { return session::rank_from_environment(own_environment()); }

// Reads the settings as a traced process will, makes the directory, leaves the note. 0, or errno.
DFT_EXPORT int dftracer_run_begin(const char* program, Run* out) try {
  dft::SlowPath slow;
  *out = {};
  const session::Config config = session::read_config(
      own_environment(), [](void*, const char* line) { dft::say_line(line); }, nullptr);
  session::TracePlace place{};
  const int error = session::resolve(config.log_file.c_str(), true, config.compression, place);
  if (error != 0) return -error;
  std::memcpy(out->directory, place.directory, sizeof out->directory);
  session::spool_directory(place, config.spool_dir.c_str(), out->spools);
  const long writable = dft::sys::call(SYS_faccessat, AT_FDCWD, out->directory, W_OK | X_OK);
  if (writable != 0) return static_cast<int>(-writable);

  dft::buffer::Owner self{};
  recovery::describe_self(self);
  out->key = recovery::process_key(self);
  session::RunIdentity kin{};
  if (session::find_run(out->spools, self, kin)) {
    out->guest = 1;
    out->run = kin.run;
  } else {
    out->run = choose_run(config);
    kin = {out->run, out->key, {}};
    if (!session::write_run_note(out->spools, out->key, kin)) return EACCES;
  }
  char name[56];
  const session::Untraced why = dft::intercept::why_untraced(program, true, environ, name);
  out->untraced = static_cast<std::uint32_t>(why);
  std::snprintf(out->why, sizeof out->why, "%s", session::describe(why));
  return 0;
} catch (...) {
  return ENOMEM;
}

// Recovers the spools of the run's dead processes, and returns the run's totals so far.
// 0, or errno.
DFT_EXPORT int dftracer_run_look(Run* run, Sums* out) {
  dft::SlowPath slow;
  *out = {};
  if (run->guest != 0) return 0;
  dft::record::choose_clock();
  recovery::RecoveryOptions wanted;
  wanted.only_run = true;
  wanted.run = run->run;
  recovery::RecoveryCounts found;
  const int error = recovery::recover_directory(run->directory, wanted, found);
  run->recovered += found.run_processes;
  run->recovered_events += found.run_events;
  run->recovered_files += found.run_files;
  run->recovered_lost += found.run_lost;
  session::RunTotals amounts{};
  session::read_totals(run->spools, run->key, amounts, out->untraced, sizeof out->untraced);
  out->processes = amounts.processes + run->recovered;
  out->events = amounts.events + run->recovered_events;
  out->files = amounts.files + run->recovered_files;
  out->calls = amounts.calls;
  out->filtered = amounts.filtered;
  out->lost = amounts.lost + run->recovered_lost;
  out->recovered = run->recovered;
  out->alive = found.alive;
  out->broken = found.broken;
  out->ring_requests = amounts.ring_requests;
  return -error;
}

// Removes the run note: processes that end from now on are not added.
DFT_EXPORT void dftracer_run_end(const Run* run) {
  dft::SlowPath slow;
  if (run->guest == 0) session::remove_run_note(run->spools, run->key);
}
