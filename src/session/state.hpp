// What is known of the recording of this process, shared by the files of this room: opening,
// closing and what comes between them. Everything here is touched with g_lock held, but the two
// pointers that a thread needs when a buffer is full.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "buffer/spool.hpp"
#include "recovery/recover.hpp"
#include "session/claim.hpp"
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

// Leaked on purpose: threads may record while the process exits.
struct Session {
  Config config;
  Place place{};
  Facts facts{};
  int rank = -1;
  std::uint64_t run = 0;
  std::uint64_t rate = 0;  // of the clock, once it is known
  std::uint64_t next_id = kFirstId;
  std::uint32_t pid = 0;
  char trace_name[256] = {};   // chosen; empty before the first spool of this process
  char note[kClaimPath] = {};  // names a spool that is not next to the trace
  buffer::Spool* spool = nullptr;
  sink::Sink* sink = nullptr;
  sink::Writer* writer = nullptr;
  char spool_place[4096] = {};  // where spools and notes to kin are made
  bool spool_elsewhere = false;
  unsigned given_to = 0;    // the user whom this process's files belong to, where it gave up root
  std::uint64_t first = 0;  // key of the run's first process
  std::uint64_t key = 0;    // of this one
  bool word_left = false;
  bool preloaded = false;
  bool io_is_off = false;  // by the settings, not by the call that started the session
  bool leaves_nothing_empty = false;
  bool suspended = false;  // an exec is under way that ends the trace
  bool ends_last = false;  // after every destructor, not among them
  Amounts reported{};      // calls and losses that this process has already added to the run's
  recovery::Found finished_for;  // of the run's dead whose traces this process completed
  IoMeter io;
  std::uint64_t cpu_before = 0;  // microseconds that the process had used when recording began
  bool cpu_counts = false;       // whether that is known
  int starts = 0;
  bool failed = false;  // said so once; this process is not traced
};

extern Lock g_lock;
extern std::atomic<Session*> g_session;
extern std::atomic<sink::Sink*> g_sink;
extern std::atomic<sink::Writer*> g_writer;

inline bool is_talkative(const Session& s) { return s.config.log_level <= LogLevel::kInfo; }
// The process has forked since, and what it has is its parent's.
inline bool is_child(const Session& s) {
  return s.pid != static_cast<std::uint32_t>(sys::process_id());
}

// A spool, its name, its sink and its writer. 0, or -errno.
int open_spool(Session& s, bool may_be_exact);
// In a forked child: what was inherited is the parent's, and is let go without a trace.
void leave_parent(Session& s);
// Drains, ends the file, lets go of the spool, and finishes for children that died before us.
void close(Session& s);
// What has come to this process's trace and is not in the run's totals yet; the caller adds it.
Amounts take_unreported(Session& s);

}  // namespace dft::session
