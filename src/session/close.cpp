// Closing: the end of a trace, of a session and of the process.
#include <cstdio>
#include <string>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "recovery/recover.hpp"
#include "session/ring_gap.hpp"
#include "session/session.hpp"
#include "session/state.hpp"

extern "C" int __cxa_atexit(void (*)(void*), void*, void*);

namespace dft::session {
namespace {

// One line about the whole run, with the reason if it recorded nothing.
void say_summary(const Session& s, const RunTotals& totals, const char* untraced) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  char why[700] = "";
  if (totals.events == 0 && s.config.disable_io) {
    std::snprintf(why, sizeof why, "; DFTRACER_DISABLE_IO is on, and no region was recorded");
  } else if (totals.events == 0 && totals.calls == 0) {
    std::snprintf(why, sizeof why, "; no call was intercepted and no region recorded");
  } else if (totals.events == 0) {
    // Without the heap: the process may be leaving from inside a signal handler.
    int n = std::snprintf(why, sizeof why, "; all calls were outside %s",
                          s.config.data_dirs.empty()
                              ? "the program's own files (DFTRACER_DATA_DIR=all records those of "
                                "the system, too)"
                              : "DFTRACER_DATA_DIR:");
    for (const std::string& directory : s.config.data_dirs) {
      if (n < 0 || static_cast<std::size_t>(n) >= sizeof why) break;
      n += std::snprintf(why + n, sizeof why - static_cast<std::size_t>(n), " %s",
                         directory.c_str());
    }
  }
  char rest[1200] = "";
  if (untraced[0] != '\0') std::snprintf(rest, sizeof rest, "; not traced: %s", untraced);
  const auto plural = [](std::uint64_t n, const char* many) { return n == 1 ? "" : many; };
  char rings[80] = "";
  if (totals.ring_requests != 0) {
    std::snprintf(rings, sizeof rings, "; not seen: %llu request%s of io_uring",
                  number(totals.ring_requests), plural(totals.ring_requests, "s"));
  }
  say("%llu event%s, %llu file%s, %llu process%s in %.400s; %llu call%s filtered, %llu event%s "
      "lost%s%s%s",
      number(totals.events), plural(totals.events, "s"), number(totals.files),
      plural(totals.files, "s"), number(totals.processes), plural(totals.processes, "es"),
      s.place.directory, number(totals.filtered), plural(totals.filtered, "s"), number(totals.lost),
      plural(totals.lost, "s"), why, rings, rest);
}

// How long the main thread has waited for a processor since recording began; -1 if unknown.
std::int64_t measure_cpu_wait(const Session& s) {
  const std::int64_t now = cpu_wait_time();
  if (now < 0 || s.cpu_wait_before < 0) return -1;
  return std::max<std::int64_t>(now - s.cpu_wait_before, 0);
}

// What passed through intercepted calls, beside what the kernel counted. CPU time alone if calls
// are not intercepted, or the kernel's count is not known.
sink::IoTotals measure_totals(const Session& s) {
  sink::IoTotals totals{};
  totals.cpu_us = cpu_time() - s.cpu_before;
  totals.cpu_wait_us = measure_cpu_wait(s);
  totals.rings = g_ring_gap.rings.exchange(0);
  totals.ring_requests = g_ring_gap.requests.exchange(0);
  const std::uint64_t own_read = sys::g_own_read.load();
  const std::uint64_t own_written = sys::g_own_written.load();
  IoBytes moved;
  if (s.config.disable_io || !s.io.measure(moved)) return totals;
  const buffer::TallySums sums = buffer::sum_tallies();
  const auto since = [](std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
  };
  totals.counted = true;
  totals.calls = sums.calls;
  totals.filtered = sums.filtered;
  totals.read_seen = sums.read;
  totals.read_total = since(moved.read, own_read);
  totals.write_seen = sums.written;
  totals.write_total = since(moved.written, own_written);
  totals.storage_read = moved.storage;
  return totals;
}

// The run's first process prints the summary; the others add their share to its run note.
void account(Session& s, RunTotals totals) {
  if (s.first != s.key) {
    add_totals(s.spool_place, s.first, totals);
    if (s.has_run_note) remove_run_note(s.spool_place, s.key);
    s.has_run_note = false;
    return;
  }
  char untraced[1024] = "";
  if (s.has_run_note) {
    read_totals(s.spool_place, s.key, totals, untraced, sizeof untraced);
    remove_run_note(s.spool_place, s.key);
    s.has_run_note = false;
  }
  const bool empty = s.preloaded && totals.events == 0;
  if (s.config.summary && (!s.config.disable_io || empty)) say_summary(s, totals, untraced);
}

void add(RunTotals& totals, const recovery::RecoveryCounts& found) {
  totals.processes += found.run_processes;
  totals.events += found.run_events;
  totals.files += found.run_files;
  totals.lost += found.run_lost;
}

}  // namespace

RunTotals take_unreported(Session& s) {
  buffer::SpoolHead& head = s.pipeline->spool.head();
  const buffer::TallySums sums = buffer::sum_tallies();
  const std::uint64_t lost = head.lost.load();
  const auto since = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  const RunTotals fresh{0,
                        buffer::unreported_events(head),
                        buffer::unreported_files(head),
                        since(sums.calls, s.reported.calls),
                        since(sums.filtered, s.reported.filtered),
                        since(lost, s.reported.lost),
                        0};
  buffer::set_reported(head);
  s.reported.calls = sums.calls;
  s.reported.filtered = sums.filtered;
  s.reported.lost = lost;
  return fresh;
}

namespace {

struct Closed {
  RunTotals totals;
  std::uint64_t lost;
  bool done;  // nothing is left in the spool
  bool has_reported;
};

// Ends the file. Under the sink's lock, so that the writer is not between a write and its count.
Closed end_trace(Session& s) {
  Pipeline& pipeline = *s.pipeline;
  Locked locked(pipeline.sink.lock());
  const sink::IoTotals totals = measure_totals(s);
  // A preloaded process that did nothing of interest leaves no file: there may be thousands. Nor
  // does one whose settings switch every category of calls off.
  const bool unused = (s.preloaded || s.leaves_nothing_empty) &&
                      pipeline.spool.head().trace_size == 0 && pipeline.sink.is_unused();
  const bool done =
      unused || pipeline.sink.finish({.details = s.config.inc_metadata, .totals = &totals});
  if (unused) pipeline.sink.abandon();
  buffer::SpoolHead& head = pipeline.spool.head();
  if (is_talkative(s)) {
    say("process %u: %llu records in %s/%s", s.pid,
        static_cast<unsigned long long>(head.trace_lines), s.place.directory, s.trace_name);
  }
  Closed closed{take_unreported(s), head.lost.load(), done, pipeline.sink.has_reported()};
  closed.totals.processes = unused ? 0 : 1;
  closed.totals.ring_requests = totals.ring_requests;
  head.flags |= buffer::kCounted;
  s.next_id = head.next_id.load();
  s.rate = pipeline.spool.clock_map().rate();
  return closed;
}

// Completes the traces of the run's processes that died. It walks over the directory, which a job
// of ten thousand ranks cannot afford for nothing: only where there were children.
void recover_children(const Session& s, RunTotals& totals) {
  if (!buffer::g_forked.load() && !has_reaped_children()) return;
  recovery::RecoveryCounts found;
  recovery::RecoveryOptions children;
  children.only_run = true;
  children.run = s.run;
  children.quiet = true;
  recovery::recover_directory(s.place.directory, children, found);
  add(totals, found);
}

}  // namespace

// The second time there is room: what was recorded before is in the file.
void let_observer_finish(const Session& s) {
  const Observer* observer = g_observer.load();
  if (observer == nullptr || s.pipeline == nullptr || !observer->closes()) return;
  write_out(*s.pipeline, Locked(s.pipeline->sink.lock()));
  [[maybe_unused]] const bool left = observer->closes();
}

void close(Session& s) {
  let_observer_finish(s);
  buffer::stop_generation();
  if (s.pipeline == nullptr) return;
  Pipeline& pipeline = *s.pipeline;
  pipeline.writer.stop();
  Closed closed = end_trace(s);
  say_what_was_kept();
  g_pipeline.store(nullptr);
  buffer::g_names.publish_to(nullptr);
  buffer::g_spool.store(nullptr);
  s.pipeline = nullptr;
  pipeline.spool.retire(closed.done);
  if (s.spool_pointer[0] != '\0' && closed.done) sys::unlink(s.spool_pointer);
  s.spool_pointer[0] = '\0';
  if (closed.lost != 0 && !closed.has_reported) {
    say("%llu events of process %u were lost; %s/%s says when",
        static_cast<unsigned long long>(closed.lost), s.pid, s.place.directory, s.trace_name);
  }
  if (closed.done) recover_children(s, closed.totals);
  add(closed.totals, s.recovered_for);
  s.recovered_for = {};
  account(s, closed.totals);
}

constinit std::atomic<void (*)()> g_before_end{nullptr};

void process_exits() {
  Session* s = g_session.load();
  if (s == nullptr || !buffer::g_on.load()) return;
  if (void (*before)() = g_before_end.load()) before();
  before_close(Closing::kForGood);
  SlowPath slow;
  Locked locked(g_lock);
  if (is_child(*s) || s->pipeline == nullptr) return;
  close(*s);
}

namespace {

__attribute__((destructor)) void process_ends() {
  const Session* s = g_session.load();
  if (s != nullptr && s->ends_last) return;
  process_exits();
  // Other libraries may still run their destructors. Their calls begin the trace again, for whoever recovers it; of a Python program, which has ended, nobody wants that.
  if (s != nullptr && s->is_python) buffer::g_on.store(false);
}

}  // namespace

// Handlers registered before main begins run after all destructors.
void end_last(Session& s) {
  s.ends_last = __cxa_atexit([](void*) { process_exits(); }, nullptr, nullptr) == 0;
}

void at_exit() noexcept { process_exits(); }

}  // namespace dft::session
