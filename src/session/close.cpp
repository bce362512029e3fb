#include <cstdio>
#include <string>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "recovery/recover.hpp"
#include "session/state.hpp"

namespace dft::session {
namespace {

// One line about the whole run, and why there is nothing in it where there is nothing.
void say_summary(const Session& s, const Amounts& amounts, const char* untraced) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  char why[700] = "";
  if (amounts.events == 0 && s.config.disable_io) {
    std::snprintf(why, sizeof why, "; DFTRACER_DISABLE_IO is on, and no region was recorded");
  } else if (amounts.events == 0 && amounts.calls == 0) {
    std::snprintf(why, sizeof why, "; no call was intercepted and no region recorded");
  } else if (amounts.events == 0) {
    // No memory is asked for: the process may be leaving from inside a signal handler.
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
  say("%llu event%s, %llu file%s, %llu process%s in %.400s; %llu call%s filtered, %llu event%s "
      "lost%s%s",
      number(amounts.events), plural(amounts.events, "s"), number(amounts.files),
      plural(amounts.files, "s"), number(amounts.processes), plural(amounts.processes, "es"),
      s.place.directory, number(amounts.filtered), plural(amounts.filtered, "s"),
      number(amounts.lost), plural(amounts.lost, "s"), why, rest);
}

// What passed through intercepted calls, beside what the kernel counted. Processor time alone if
// calls are not intercepted, or the kernel's count is not known.
sink::Encoder::Traffic measure_traffic(const Session& s) {
  sink::Encoder::Traffic traffic{};
  traffic.cpu_us = cpu_time() - s.cpu_before;
  const std::uint64_t own_read = sys::g_own_read.load();
  const std::uint64_t own_written = sys::g_own_written.load();
  record::IoBytes moved;
  if (s.config.disable_io || !s.io.measure(moved)) return traffic;
  const buffer::Sums sums = buffer::sum_tallies();
  const auto since = [](std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
  };
  return {traffic.cpu_us, true,
          sums.calls,     sums.filtered,
          sums.read,      since(moved.read, own_read),
          sums.written,   since(moved.written, own_written)};
}

// The run's first process tells what the run came to; the others tell it.
void account(Session& s, Amounts amounts) {
  if (s.first != s.key) {
    add_amounts(s.spool_place, s.first, amounts);
    if (s.word_left) take_word_back(s.spool_place, s.key);
    s.word_left = false;
    return;
  }
  char untraced[1024] = "";
  if (s.word_left) {
    read_amounts(s.spool_place, s.key, amounts, untraced, sizeof untraced);
    take_word_back(s.spool_place, s.key);
    s.word_left = false;
  }
  const bool empty = s.preloaded && amounts.events == 0;
  if (s.config.summary && (!s.config.disable_io || empty)) say_summary(s, amounts, untraced);
}

void add(Amounts& amounts, const recovery::Found& found) {
  amounts.processes += found.run_processes;
  amounts.events += found.run_events;
  amounts.files += found.run_files;
  amounts.lost += found.run_lost;
}

}  // namespace

Amounts take_unreported(Session& s) {
  buffer::SpoolHead& head = s.spool->head();
  const buffer::Sums sums = buffer::sum_tallies();
  const std::uint64_t lost = head.lost.load();
  const auto since = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  const Amounts fresh{0,
                      buffer::unreported_events(head),
                      buffer::unreported_files(head),
                      since(sums.calls, s.reported.calls),
                      since(sums.filtered, s.reported.filtered),
                      since(lost, s.reported.lost)};
  buffer::set_reported(head);
  s.reported.calls = sums.calls;
  s.reported.filtered = sums.filtered;
  s.reported.lost = lost;
  return fresh;
}

void close(Session& s) {
  buffer::stop_generation();
  buffer::Spool* spool = s.spool;
  if (spool == nullptr) return;
  s.writer->stop();
  std::uint64_t lost = 0;
  bool done = false;
  bool told = false;
  bool unused = false;
  Amounts amounts{};
  {
    Locked locked(s.sink->lock());
    // With the lock, so that the writer is not between a write of ours and the note of it.
    const sink::Encoder::Traffic traffic = measure_traffic(s);
    // A preloaded process that did nothing of interest leaves no file: there may be thousands. Nor
    // does one for which the settings switch every category of calls off.
    unused = (s.preloaded || s.leaves_nothing_empty) && spool->head().trace_size == 0 &&
             s.sink->is_unused();
    done = unused || s.sink->finish(s.config.inc_metadata, false, &traffic);
    if (unused) s.sink->abandon();
    const buffer::SpoolHead& head = spool->head();
    lost = head.lost.load();
    told = s.sink->told();
    if (is_talkative(s)) {
      say("process %u: %llu records in %s/%s", s.pid,
          static_cast<unsigned long long>(head.trace_lines), s.place.directory, s.trace_name);
    }
    amounts = take_unreported(s);
    amounts.processes = unused ? 0 : 1;
    spool->head().flags |= buffer::kCounted;
    s.next_id = head.next_id.load();
    s.rate = spool->timeline().rate();
  }
  say_what_was_kept();
  g_sink.store(nullptr);
  g_writer.store(nullptr);
  buffer::g_names.publish_to(nullptr);
  buffer::g_spool.store(nullptr);
  s.spool = nullptr;
  spool->retire(done);
  if (s.note[0] != '\0' && done) sys::unlink(s.note);
  s.note[0] = '\0';
  if (lost != 0 && !told) {
    say("%llu events of process %u were lost; %s/%s says when",
        static_cast<unsigned long long>(lost), s.pid, s.place.directory, s.trace_name);
  }
  // Looking costs a walk over the directory, which a job of ten thousand ranks cannot afford for
  // nothing.
  if (done && (buffer::g_forked.load() || has_reaped_children())) {
    recovery::Found found;
    recovery::Wanted children;
    children.only_run = true;
    children.run = s.run;
    children.quiet = true;
    recovery::recover_directory(s.place.directory, children, found);
    add(amounts, found);
  }
  add(amounts, s.finished_for);
  s.finished_for = {};
  account(s, amounts);
}

}  // namespace dft::session
