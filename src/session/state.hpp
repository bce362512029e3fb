// The state of this process's recording, shared by the files of this room: open.cpp, close.cpp,
// fork.cpp, exec.cpp, credentials.cpp and session.cpp. Everything is touched with g_lock held,
// except g_pipeline, which a thread needs when its buffer is full.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "buffer/spool.hpp"
#include "recovery/recover.hpp"
#include "session/config.hpp"
#include "session/preamble.hpp"
#include "session/proc_io.hpp"
#include "session/run_note.hpp"
#include "session/trace_name.hpp"
#include "sink/sink.hpp"
#include "sink/writer.hpp"

namespace dft::session {

// Ids 1 to 6 are the opening records'; a process's first event is number 7, as in existing traces.
inline constexpr std::uint64_t kFirstId = 1;

// From chunks to the trace file. Leaked on purpose: a thread may still hold it when it is closed.
struct Pipeline {
  buffer::Spool& spool;
  sink::Sink& sink;
  sink::Writer writer;
};

// Leaked on purpose: threads may record while the process exits.
struct Session {
  Config config;
  TracePlace place{};
  ProcessFacts facts{};
  int rank = -1;
  std::uint64_t run = 0;
  std::uint64_t rate = 0;  // of the clock, once it is known
  std::uint64_t next_id = kFirstId;
  std::uint32_t pid = 0;
  char trace_name[256] = {};            // chosen; empty before the first spool of this process
  char spool_pointer[kClaimPath] = {};  // path of the file that names a spool elsewhere; or empty
  Pipeline* pipeline = nullptr;         // while there is a spool
  char spool_place[4096] = {};          // where spools and run notes are made
  bool spool_elsewhere = false;
  unsigned given_to = 0;    // the user whom this process's files belong to, where it gave up root
  std::uint64_t first = 0;  // key of the run's first process
  std::uint64_t key = 0;    // of this one
  bool has_run_note = false;
  bool preloaded = false;
  bool io_is_off = false;  // by the settings, not by the call that started the session
  bool leaves_nothing_empty = false;
  bool is_python = false;
  bool suspended = false;  // an exec is under way that ends the trace
  bool ends_last = false;  // after every destructor, not among them
  RunTotals reported{};    // calls and losses that this process has already added to the run's
  // Traces of dead processes of the run that this one completed.
  recovery::RecoveryCounts recovered_for;
  IoMeter io;
  std::uint64_t cpu_before = 0;       // microseconds that the process had used when recording began
  std::int64_t cpu_wait_before = -1;  // and that its main thread had waited for a processor
  bool cpu_counts = false;            // whether these are known
  int starts = 0;
  bool failed = false;  // reported once; this process is not traced
};

extern Lock g_lock;
extern std::atomic<Session*> g_session;
extern std::atomic<Pipeline*> g_pipeline;
extern std::atomic<const struct Observer*> g_observer;  // null: nobody

inline bool is_talkative(const Session& s) { return s.config.log_level <= LogLevel::kInfo; }
// The process has forked since, and what it has is its parent's.
inline bool is_child(const Session& s) {
  return s.pid != static_cast<std::uint32_t>(sys::process_id());
}

// open.cpp: a spool under a claimed name, its sink and its writer. 0, or -errno.
[[nodiscard]] int open_spool(Session& s, bool may_be_exact);
// close.cpp: drains, ends the file, lets go of the spool, and completes the traces of children that
// died before this process.
void close(Session& s);
// The trace, or this program's part of it, ends: the observer records what it still has.
void let_observer_finish(const Session& s);
// The end of the process, as late as the loader allows: what other libraries record while they end
// is still kept.
void process_exits();
// For a preloaded process: ends after all destructors, not among them.
void end_last(Session& s);
// What this process's trace has gained and the run's totals do not hold yet; the caller adds it.
[[nodiscard]] RunTotals take_unreported(Session& s);
// fork.cpp: in a forked child, lets go of what was inherited without touching the parent's files.
void leave_parent(Session& s);
bool watch_forks();
// Writes this process's run note, unless it is there.
void write_run_note_once(Session& s);
// Writes what was recorded so far, under the sink's lock. What cannot be written stays in the
// spool, for later or for recovery.
void write_out(Pipeline& pipeline, const Locked& sink_locked);

}  // namespace dft::session
