#include "session/session.hpp"

#include <stdlib.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "buffer/span.hpp"
#include "format/hash.hpp"
#include "recovery/owner.hpp"
#include "session/ring_gap.hpp"
#include "session/state.hpp"

extern char** environ;
extern "C" char __libc_single_threaded __attribute__((weak));  // glibc 2.32 and later

namespace dft::session {

Lock g_lock;
std::atomic<Session*> g_session{nullptr};
std::atomic<Pipeline*> g_pipeline{nullptr};
std::atomic<const Observer*> g_observer{nullptr};

namespace {

void keep_line(void* lines, const char* line) {
  static_cast<std::vector<std::string>*>(lines)->emplace_back(line);
}

// A thread's first event in this spool.
bool begin() {
  if (buffer::generation_is_live()) return true;
  Locked locked(g_lock);
  if (buffer::generation_is_live()) return true;
  Session* s = g_session.load();
  if (s == nullptr || !buffer::g_on.load() || s->failed) return false;
  const bool child = is_child(*s);
  if (child) leave_parent(*s);
  const int error = open_spool(*s, !child);
  if (error == 0) return true;
  s->failed = true;
  buffer::g_on.store(false);
  say("cannot record process %d into %.400s: %s; it runs untraced", sys::process_id(),
      s->place.directory, reason(error));
  return false;
}

bool make_room() {
  Pipeline* pipeline = g_pipeline.load();
  say_what_was_kept();
  return pipeline != nullptr && pipeline->sink.reclaim_or_drop();
}

// The only thread may open files itself: no other can be waiting for the number of the descriptor.
bool ask_writer(std::size_t size, bool small, std::uint32_t seen) {
  Pipeline* pipeline = g_pipeline.load();
  if (pipeline == nullptr) return false;
  const bool alone = &__libc_single_threaded != nullptr && __libc_single_threaded != 0;
  return (!alone || pipeline->writer.runs()) && pipeline->writer.make_room(size, small, seen);
}

void filled() {
  if (Pipeline* pipeline = g_pipeline.load()) pipeline->writer.notify();
}

// The run of the process that started this one, if its run note can be found; else a new run.
void join_run(Session& s, const Environment& environment) {
  buffer::Owner self{};
  recovery::describe_self(self);
  s.first = recovery::process_key(self);
  RunIdentity identity{};
  const bool known = find_run(s.spool_place, self, identity);
  if (known) {
    s.run = identity.run;
    s.first = identity.first;
    s.has_run_note = identity.trace_name[0] != '\0';
    if (!s.place.exact) std::memcpy(s.trace_name, identity.trace_name, sizeof s.trace_name);
  }
  if (!s.config.run_id.empty()) {
    s.run = ::strtoull(s.config.run_id.c_str(), nullptr, 16);
  } else if (!known) {
    const std::string job = job_from_environment(environment);
    s.run = job.empty() ? random64() : format::hash16(job);
  }
}

bool open_session(Session& s, const Request& request) {
  s.preloaded = request.preloaded;
  s.io_is_off = s.config.disable_io;
  s.leaves_nothing_empty =
      s.config.disable_posix && s.config.disable_stdio && s.config.disable_io_uring;
  if (request.preloaded) end_last(s);
  record::choose_clock();
  const Environment environment{environ, ::getauxval(AT_SECURE) != 0};
  const bool named = request.log_file != nullptr && request.log_file[0] != '\0';
  const char* path = named ? request.log_file : s.config.log_file.c_str();
  if (request.data_dirs != nullptr) add_directories(s.config.data_dirs, request.data_dirs);
  if (!request.intercept) s.config.disable_io = true;
  s.rank = request.rank >= 0 ? request.rank : rank_from_environment(environment);
  int error = resolve(path, !named, s.config.compression, s.place);
  if (error == 0) {
    gather(s.facts, s.config.mask_secrets);
    s.spool_elsewhere = spool_directory(s.place, s.config.spool_dir.c_str(), s.spool_place);
    join_run(s, environment);
    buffer::g_hooks = {begin, make_room, ask_writer, filled};
    buffer::g_on.store(true);
    error = open_spool(s, true);
  }
  if (error == 0) return true;
  buffer::g_on.store(false);
  say("cannot record into %.400s: %s; the program runs untraced",
      s.place.directory[0] != '\0' ? s.place.directory : path, reason(error));
  return false;
}

// Faults in the settings are reported once, however often a session starts.
void say_settings(const std::vector<std::string>& lines) {
  static bool said = false;
  for (const std::string& line : lines) {
    if (!said) say_line(line.c_str());
  }
  said = true;
}

}  // namespace

bool start(const Request& request) noexcept try {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s != nullptr && buffer::g_on.load() && (s->starts > 0 || is_child(*s))) {
    ++s->starts;
    if (request.data_dirs != nullptr) add_directories(s->config.data_dirs, request.data_dirs);
    return true;
  }
  static bool quick_exit_watched = false;
  if (!quick_exit_watched) quick_exit_watched = ::at_quick_exit(process_exits) == 0;
  static bool forks_watched = false;
  if (!forks_watched) forks_watched = watch_forks();
  auto* fresh = new Session;
  std::vector<std::string> lines;
  fresh->config = read_config({environ, ::getauxval(AT_SECURE) != 0}, keep_line, &lines);
  if (!fresh->config.log_path.empty()) say_into(fresh->config.log_path.c_str());
  if (!fresh->config.enable) {
    say_settings(lines);
    delete fresh;
    return false;
  }
  if (s != nullptr && !is_child(*s)) {  // the same process again: its clock and its ids go on
    fresh->rate = s->rate;
    fresh->next_id = s->next_id;
    fresh->cpu_before = s->cpu_before;
    fresh->cpu_wait_before = s->cpu_wait_before;
    fresh->cpu_counts = s->cpu_counts;
  }
  g_session.store(fresh);
  const bool opened = open_session(*fresh, request);
  // Only the run's first process reports them.
  if (fresh->first == fresh->key) say_settings(lines);
  if (!opened) return false;
  fresh->starts = 1;
  return true;
} catch (...) {
  say("no memory to start; the program runs untraced");
  return false;
}

void stop() noexcept {
  Session* s = g_session.load();
  if (s != nullptr && s->starts == 1) {
    if (void (*before)() = g_before_end.load()) before();
    before_close(Closing::kForGood);
  }
  SlowPath slow;
  Locked locked(g_lock);
  s = g_session.load();
  if (s == nullptr || s->starts == 0) return;
  if (is_child(*s)) {  // a child that recorded nothing: the file is its parent's
    leave_parent(*s);
    s->pid = static_cast<std::uint32_t>(sys::process_id());
  }
  if (--s->starts > 0) {
    if (s->pipeline != nullptr) write_out(*s->pipeline, Locked(s->pipeline->sink.lock()));
    return;
  }
  buffer::g_on.store(false);
  buffer::new_epoch();
  close(*s);
}

void write_out(Pipeline& pipeline, const Locked& /*sink_locked*/) {
  [[maybe_unused]] const bool all = pipeline.sink.drain(sink::Sink::Scope::kEverything);
}

void flush() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->pipeline == nullptr || is_child(*s)) return;
  write_out(*s->pipeline, Locked(s->pipeline->sink.lock()));
}

void stderr_closes() noexcept {
  const Session* s = g_session.load();
  if (s == nullptr || !s->preloaded || !s->config.summary || s->first != s->key) return;
  SlowPath slow;
  if (!is_child(*s)) keep_stderr();
}

void serve_python() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr) return;
  s->is_python = true;
  if (s->io_is_off) s->leaves_nothing_empty = true;
}

void observe(const Observer& observer) noexcept { g_observer.store(&observer); }

void watch(const sink::Watch& watch) noexcept {
  if (Pipeline* pipeline = g_pipeline.load()) pipeline->writer.watch(watch);
}

void ring_writer() noexcept {
  if (Pipeline* pipeline = g_pipeline.load()) pipeline->writer.resume_watch();
}

bool active() noexcept { return buffer::g_on.load(std::memory_order_relaxed); }

std::uint64_t run_id() noexcept {
  const Session* s = g_session.load();
  return s != nullptr && active() ? s->run : 0;
}

void set_rank(int rank) noexcept {
  const SlowPath slow;
  const buffer::ThreadState* t = buffer::this_thread();
  Session* s = g_session.load();
  if (t == nullptr || s == nullptr || s->rank == rank) return;
  s->rank = rank;
  char text[24];
  const int digits = std::snprintf(text, sizeof text, "%d", rank);
  record::Head head{};
  head.kind = record::Kind::kProcess;
  head.name = buffer::g_names.id("rank");
  if (head.name != 0) buffer::write_text(t->live, head, {text, static_cast<std::size_t>(digits)});
  const int size = std::snprintf(text, sizeof text, "rank %d", rank);
  head.kind = record::Kind::kProcessName;
  buffer::write_text(t->live, head, {text, static_cast<std::size_t>(size)});
}

std::string trace_path() {
  if (buffer::this_thread() == nullptr) return {};  // makes a forked child's own, if there is none
  SlowPath slow;
  Locked locked(g_lock);
  const Session* s = g_session.load();
  if (s == nullptr || s->pipeline == nullptr || is_child(*s)) return {};
  return std::string(s->place.directory) + '/' + s->trace_name;
}

const Config& config() noexcept {
  static const Config kDefaults{};
  const Session* s = g_session.load();
  return s != nullptr ? s->config : kDefaults;
}

}  // namespace dft::session
