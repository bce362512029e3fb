#include "session/session.hpp"

#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "format/hash.hpp"
#include "recovery/owner.hpp"
#include "session/state.hpp"

extern char** environ;
extern "C" int __cxa_atexit(void (*)(void*), void*, void*);
extern "C" char __libc_single_threaded __attribute__((weak));  // glibc 2.32 and later

namespace dft::session {

Lock g_lock;
std::atomic<Session*> g_session{nullptr};
std::atomic<sink::Sink*> g_sink{nullptr};
std::atomic<sink::Writer*> g_writer{nullptr};

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
  sink::Sink* sink = g_sink.load();
  say_what_was_kept();
  return sink != nullptr && sink->make_room();
}

// A thread that is alone may open files itself: nobody can be waiting for the descriptor's number.
bool ask_writer(std::size_t size, bool small, std::uint32_t seen) {
  sink::Writer* writer = g_writer.load();
  if (writer == nullptr) return false;
  const bool alone = &__libc_single_threaded != nullptr && __libc_single_threaded != 0;
  return (!alone || writer->runs()) && writer->make_room(size, small, seen);
}

void filled() {
  if (sink::Writer* writer = g_writer.load()) writer->notify();
}

// Before a fork: a program that has one thread has one then, as far as it and its runtime can see.
void send_writer_away() {
  if (sink::Writer* writer = g_writer.load()) writer->pause();
}

// The end of the process, as late as the loader allows: what other libraries' ends record is still
// kept, in a spool that whoever reads the trace will finish.
void process_exits() {
  Session* s = g_session.load();
  if (s == nullptr || !buffer::g_on.load()) return;
  SlowPath slow;
  Locked locked(g_lock);
  if (is_child(*s) || s->spool == nullptr) return;
  close(*s);
}

__attribute__((destructor)) void process_ends() {
  const Session* s = g_session.load();
  if (s == nullptr || !s->ends_last) process_exits();
}

// Handlers that are there before the program's main function begins run after all destructors.
void end_last(Session& s) {
  s.ends_last = __cxa_atexit([](void*) { process_exits(); }, nullptr, nullptr) == 0;
}

// The run of whoever started us, where that can be seen; else a new one.
void join_run(Session& s, const Environment& environment) {
  buffer::Owner self{};
  recovery::describe_self(self);
  s.first = recovery::process_key(self);
  Kin kin{};
  const bool known = find_kin(s.spool_place, self, kin);
  if (known) {
    s.run = kin.run;
    s.first = kin.first;
    s.word_left = kin.trace_name[0] != '\0';
    if (!s.place.exact) std::memcpy(s.trace_name, kin.trace_name, sizeof s.trace_name);
  }
  if (!s.config.run_id.empty()) {
    s.run = ::strtoull(s.config.run_id.c_str(), nullptr, 16);
  } else if (!known) {
    const std::string job = job_from_environment(environment);
    s.run = job.empty() ? random64() : record::hash16(job);
  }
}

bool open_session(Session& s, const Request& request) {
  s.preloaded = request.preloaded;
  s.io_is_off = s.config.disable_io;
  s.leaves_nothing_empty = s.config.disable_posix && s.config.disable_stdio;
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

// What is wrong with the settings is said once, however many ask.
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
  if (!forks_watched) forks_watched = ::pthread_atfork(send_writer_away, nullptr, nullptr) == 0;
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
    fresh->cpu_counts = s->cpu_counts;
  }
  g_session.store(fresh);
  const bool opened = open_session(*fresh, request);
  // The run's first process speaks for all.
  if (fresh->first == fresh->key) say_settings(lines);
  if (!opened) return false;
  fresh->starts = 1;
  return true;
} catch (...) {
  say("no memory to start; the program runs untraced");
  return false;
}

void stop() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->starts == 0) return;
  if (is_child(*s)) {  // a child that recorded nothing: the file is its parent's
    leave_parent(*s);
    s->pid = static_cast<std::uint32_t>(sys::process_id());
  }
  if (--s->starts > 0) {
    if (s->sink == nullptr) return;
    Locked sink_locked(s->sink->lock());
    s->sink->drain(sink::Sink::Scope::kEverything);
    return;
  }
  buffer::g_on.store(false);
  buffer::new_epoch();
  close(*s);
}

void flush() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->sink == nullptr || is_child(*s)) return;
  Locked sink_locked(s->sink->lock());
  s->sink->drain(sink::Sink::Scope::kEverything);
}

void at_exit() noexcept { process_exits(); }

Alone::Alone() noexcept : writer_(g_writer.load()) {
  if (writer_ != nullptr) writer_->hold();
}

Alone::~Alone() {
  if (writer_ != nullptr) writer_->let_go();
}

void stderr_closes() noexcept {
  const Session* s = g_session.load();
  if (s == nullptr || !s->preloaded || !s->config.summary || s->first != s->key) return;
  SlowPath slow;
  if (!is_child(*s)) keep_stderr();
}

void abandon() noexcept {
  buffer::g_on.store(false);
  const Session* s = g_session.load();
  if (s != nullptr && is_talkative(*s))
    say("process %u enters a sandbox: nothing is recorded from here on", s->pid);
}

void leave_nothing_empty() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s != nullptr && s->io_is_off) s->leaves_nothing_empty = true;
}

bool active() noexcept { return buffer::g_on.load(std::memory_order_relaxed); }

std::uint64_t run_id() noexcept {
  const Session* s = g_session.load();
  return s != nullptr && active() ? s->run : 0;
}

std::string trace_path() {
  if (buffer::this_thread() == nullptr) return {};  // makes a forked child's own, if there is none
  SlowPath slow;
  Locked locked(g_lock);
  const Session* s = g_session.load();
  if (s == nullptr || s->spool == nullptr || is_child(*s)) return {};
  return std::string(s->place.directory) + '/' + s->trace_name;
}

const Config& config() noexcept {
  static const Config kDefaults{};
  const Session* s = g_session.load();
  return s != nullptr ? s->config : kDefaults;
}

}  // namespace dft::session
