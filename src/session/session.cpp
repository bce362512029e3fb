#include "session/session.hpp"

#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "buffer/spool.hpp"
#include "record/hash.hpp"
#include "record/say.hpp"
#include "recovery/owner.hpp"
#include "recovery/recover.hpp"
#include "session/claim.hpp"
#include "session/facts.hpp"
#include "session/naming.hpp"
#include "session/traffic.hpp"
#include "sink/sink.hpp"
#include "sink/trace_file.hpp"
#include "sink/writer.hpp"

extern char** environ;
extern "C" int __cxa_atexit(void (*)(void*), void*, void*);
extern "C" char __libc_single_threaded __attribute__((weak));  // glibc 2.32 and later

namespace dft::session {
namespace {

constexpr std::size_t kPath = kClaimPath;
// Ids 1 to 6 are the opening records'; a process's first event is number 7, as in existing traces.
constexpr std::uint64_t kFirstId = 1;
constexpr std::uint64_t kOpeningIds = 6;
constexpr std::uint64_t kExtraIds = 8;

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
  char trace_name[256] = {};  // chosen; empty before the first spool of this process
  char note[kPath] = {};      // names a spool that is not next to the trace
  buffer::Spool* spool = nullptr;
  sink::Sink* sink = nullptr;
  sink::Writer* writer = nullptr;
  char spool_place[4096] = {};  // where spools and notes to kin are made
  bool spool_elsewhere = false;
  std::uint64_t first = 0;  // key of the run's first process
  std::uint64_t key = 0;    // of this one
  bool word_left = false;
  bool preloaded = false;
  bool suspended = false;         // an exec is under way that ends the trace
  bool ends_last = false;         // after every destructor, not among them
  Amounts told{};                 // what this process has already added to the run's
  std::uint64_t read_before = 0;  // what the kernel had counted when recording began
  std::uint64_t written_before = 0;
  int starts = 0;
  bool failed = false;  // said so once; this process is not traced
};

Lock g_lock;
std::atomic<Session*> g_session{nullptr};
std::atomic<sink::Sink*> g_sink{nullptr};
std::atomic<sink::Writer*> g_writer{nullptr};

std::uint32_t log10_of(TimeMetric metric) { return 3 * static_cast<std::uint32_t>(metric); }

bool is_talkative(const Session& s) { return s.config.log_level <= LogLevel::kInfo; }

void keep_line(void* lines, const char* line) {
  static_cast<std::vector<std::string>*>(lines)->emplace_back(line);
}

bool write_note(const char* path, const char* spool) {
  const int fd = sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  char text[kPath + 64];
  const int n = std::snprintf(text, sizeof text, "%s%s\n", recovery::kNoteStart, spool);
  const bool fine = sys::write_at(fd, text, static_cast<std::size_t>(n), 0) == 0;
  sys::close(fd);
  if (!fine) sys::unlink(path);
  return fine;
}

void fill_head(const Session& s, buffer::SpoolHead& head) {
  head.flags = (s.place.compressed ? buffer::kCompressed : 0u) |
               (s.config.disable_tids ? buffer::kNoThreadIds : 0u);
  head.run = s.run;
  head.host_hash = record::hash16(head.owner.host);
  head.time_divisor_log10 = log10_of(s.config.time_metric);
  head.compression_level = static_cast<std::uint32_t>(s.config.compression_level);
}

// The opening lines, for a file that is new or continued.
std::uint64_t compose_preamble(const Session& s, const buffer::Owner& owner,
                               std::uint64_t host_hash, std::uint64_t first_id,
                               std::uint64_t start_ns, bool opens_file, sink::Text& out) {
  out.resize(0);
  return write_preamble({&s.facts, &owner, host_hash, s.run, recovery::process_key(owner), start_ns,
                         first_id, first_id + kOpeningIds + 256, log10_of(s.config.time_metric),
                         s.rank, opens_file, s.config.inc_metadata, s.config.core_affinity},
                        out);
}

// A spool, its name, its sink and its writer; the caller holds the lock. 0, or -errno.
int open_spool(Session& s, bool may_be_exact) {
  buffer::Owner owner{};
  recovery::describe_self(owner);
  const std::uint64_t host_hash = record::hash16(owner.host);
  sink::Text preamble;
  if (compose_preamble(s, owner, host_hash, kFirstId, ~std::uint64_t{0}, true, preamble) == 0) {
    return -ENOMEM;
  }
  s.key = recovery::process_key(owner);
  const char* directory = s.spool_place;
  const bool elsewhere = s.spool_elsewhere;
  char passing[kPath];
  char base[64];
  std::snprintf(base, sizeof base, "%sdftracer-%016llx.spool", elsewhere ? "" : ".",
                static_cast<unsigned long long>(random64()));
  if (!sink::join(passing, sizeof passing, directory, "", base, "")) return -ENAMETOOLONG;
  int error = 0;
  // Room for the ids of a continued file, which have more digits than those of a new one.
  buffer::Spool* spool = buffer::Spool::create(passing, preamble.size() + 512, &error);
  if (spool == nullptr) return error;
  buffer::SpoolHead& head = spool->head();
  head.owner = owner;
  fill_head(s, head);
  spool->timeline().start(s.rate);

  char note[kPath] = {};
  if (elsewhere) {
    std::snprintf(base, sizeof base, ".dftracer-%016llx.spool",
                  static_cast<unsigned long long>(random64()));
    if (!sink::join(note, sizeof note, s.place.directory, "", base, "") ||
        !write_note(note, passing)) {
      spool->retire(true);
      return -EACCES;
    }
  }
  Existing existing{};
  const bool exact = may_be_exact && (s.place.exact || s.trace_name[0] != '\0');
  char path[kPath];
  if (!claim(s.place, head, s.trace_name, elsewhere ? note : passing, exact, path, existing)) {
    if (elsewhere) sys::unlink(note);
    spool->retire(true);
    return -EACCES;
  }
  if (elsewhere) {
    std::strcpy(s.note, path);
  } else {
    spool->moved_to(path);
  }
  const bool continued = existing.what == Existing::What::kSameProcess;
  std::uint64_t first_id = kFirstId;
  if (continued) {
    s.run = existing.run;
    head.run = s.run;
    head.trace_inode = existing.inode;
    head.trace_size = existing.size;
    // Ids go on. After an exec their number is not known; no file holds more than four to a byte.
    first_id = s.next_id > kFirstId ? s.next_id : existing.size * 4;
  } else if (exact) {
    clear_finished(s.place, head.trace_name, existing);
  }
  const std::uint64_t start_ns = spool->timeline().knots[0].ns;
  const std::uint64_t lines =
      compose_preamble(s, owner, host_hash, first_id, start_ns, !continued, preamble);
  std::memcpy(spool->preamble(), preamble.data(), preamble.size());
  head.preamble_size = preamble.size();
  head.preamble_lines = lines;
  head.next_id.store(first_id + kOpeningIds);
  std::memcpy(s.trace_name, head.trace_name, sizeof s.trace_name);

  auto* memory = static_cast<std::byte*>(sys::map_private(sizeof(sink::Writer)));
  s.sink = sink::Sink::create(*spool, s.place.directory, s.config.write_buffer_size);
  if (memory == nullptr || s.sink == nullptr || !buffer::g_names.publish_to(spool)) {
    if (elsewhere) sys::unlink(s.note);
    spool->retire(true);
    return -ENOMEM;
  }
  s.told.events = s.told.lost = s.told.files = 0;
  s.writer = new (memory) sink::Writer(*s.sink, *spool);
  s.spool = spool;
  s.pid = owner.pid;
  s.sink->heartbeat();
  head.ready.store(1, std::memory_order_release);
  g_sink.store(s.sink);
  g_writer.store(s.writer);
  buffer::g_spool.store(spool, std::memory_order_release);
  buffer::new_generation();
  if (!s.config.disable_io) {
    sys::g_own_read.store(0);
    sys::g_own_written.store(0);
    read_traffic(s.read_before, s.written_before);
  }
  // The thread that starts takes the ids after the opening records'; what else opens the file comes
  // next.
  if (buffer::ThreadState* t = buffer::this_thread()) buffer::next_ids(*t);
  head.next_id.fetch_add(kExtraIds);
  if (is_talkative(s))
    say("recording process %u into %s/%s", s.pid, s.place.directory, s.trace_name);
  return 0;
}

// In a forked child: what was inherited is the parent's, and is let go without a trace.
void leave_parent(Session& s) {
  t_vforked_from = 0;
  buffer::new_epoch();
  g_sink.store(nullptr);
  g_writer.store(nullptr);
  buffer::g_spool.store(nullptr);
  buffer::g_names.publish_to(nullptr);
  if (s.spool != nullptr) {
    s.rate = s.spool->timeline().rate();
    s.spool->retire(false);
  }
  s.spool = nullptr;
  s.sink = nullptr;
  s.writer = nullptr;
  s.trace_name[0] = '\0';
  s.note[0] = '\0';
  s.next_id = kFirstId;
  s.word_left = false;
  s.told = {};
  buffer::reset_tallies(buffer::t_thread.tally);
}

bool is_child(const Session& s) { return s.pid != static_cast<std::uint32_t>(sys::process_id()); }

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
  if (&__libc_single_threaded != nullptr && __libc_single_threaded != 0) return false;
  return writer != nullptr && writer->make_room(size, small, seen);
}

void filled() {
  if (sink::Writer* writer = g_writer.load()) writer->notify();
}

// Before a fork: a program that has one thread has one then, as far as it and its runtime can see.
void send_writer_away() {
  if (sink::Writer* writer = g_writer.load()) writer->pause();
}

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

// What passed through intercepted calls, beside what the kernel counted. False when nobody
// intercepts, or the kernel does not tell.
bool measure_traffic(const Session& s, sink::Encoder::Traffic& traffic) {
  const std::uint64_t own_read = sys::g_own_read.load();
  const std::uint64_t own_written = sys::g_own_written.load();
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  if (s.config.disable_io || !read_traffic(read, written)) return false;
  const buffer::Sums sums = buffer::sum_tallies();
  const auto since = [](std::uint64_t now, std::uint64_t before) {
    return now > before ? now - before : 0;
  };
  traffic = {sums.calls,   sums.filtered,
             sums.read,    since(read, s.read_before + own_read),
             sums.written, since(written, s.written_before + own_written)};
  return true;
}

// What has come to this process's trace since it was last asked; `ends` lines of it are ends.
Amounts news(Session& s, std::uint64_t ends) {
  const buffer::SpoolHead& head = s.spool->head();
  const buffer::Sums sums = buffer::sum_tallies();
  const std::uint64_t files = s.sink->files();
  const std::uint64_t own = head.preamble_lines + ends + s.sink->metadata_lines();
  const Amounts now{0,
                    head.trace_lines > own ? head.trace_lines - own : 0,
                    files,
                    sums.calls,
                    sums.filtered,
                    head.lost.load()};
  const Amounts before = s.told;
  s.told = now;
  const auto since = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  return {0,
          since(now.events, before.events),
          since(now.files, before.files),
          since(now.calls, before.calls),
          since(now.filtered, before.filtered),
          since(now.lost, before.lost)};
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

// Drains, ends the file, lets go of the spool, and finishes for children that died before us.
void close(Session& s) {
  buffer::stop_generation();
  buffer::Spool* spool = s.spool;
  if (spool == nullptr) return;
  s.writer->stop();
  sink::Encoder::Traffic traffic{};
  std::uint64_t lost = 0;
  bool done = false;
  bool told = false;
  bool unused = false;
  Amounts amounts{};
  {
    Locked locked(s.sink->lock());
    // With the lock, so that the writer is not between a write of ours and the note of it.
    const bool measured = measure_traffic(s, traffic);
    // A preloaded process that did nothing of interest leaves no file: there may be thousands.
    unused = s.preloaded && spool->head().trace_size == 0 && s.sink->is_unused();
    done = unused || s.sink->finish(s.config.inc_metadata, false, measured ? &traffic : nullptr);
    if (unused) s.sink->abandon();
    const buffer::SpoolHead& head = spool->head();
    lost = head.lost.load();
    told = s.sink->told();
    if (is_talkative(s)) {
      say("process %u: %llu records in %s/%s", s.pid,
          static_cast<unsigned long long>(head.trace_lines), s.place.directory, s.trace_name);
    }
    amounts = news(s, 1);
    amounts.processes = unused ? 0 : 1;
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
    amounts.processes += found.recovered;
    amounts.events += found.events - std::min(found.events, found.metadata);
    amounts.files += found.files;
  }
  account(s, amounts);
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
    gather(s.facts);
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

namespace {

void leave_word_once(Session& s) {
  if (s.word_left || s.config.disable_io) return;
  Kin kin{s.run, s.first, {}};
  std::memcpy(kin.trace_name, s.trace_name, sizeof kin.trace_name);
  s.word_left = leave_word(s.spool_place, s.key, kin);
}

}  // namespace

void will_fork() noexcept {
  buffer::g_forked.store(true);
  Session* s = g_session.load();
  if (s == nullptr || s->word_left) return;
  SlowPath slow;
  Locked locked(g_lock);
  if (s->spool != nullptr && !is_child(*s)) leave_word_once(*s);
}

void will_exec() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->spool == nullptr || is_child(*s)) return;
  leave_word_once(*s);
  Locked sink_locked(s->sink->lock());
  s->sink->drain(sink::Sink::Scope::kEverything);
  add_amounts(s->spool_place, s->first, news(*s, 0));
  s->spool->head().flags |= buffer::kEnded;
}

void will_exec_untraced() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || is_child(*s) || !buffer::g_on.exchange(false)) return;
  s->suspended = true;
  if (s->spool != nullptr) close(*s);
}

void exec_failed() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s != nullptr && s->suspended) {
    s->suspended = false;
    buffer::g_on.store(true);
  }
  if (s == nullptr || s->spool == nullptr || is_child(*s)) return;
  Locked sink_locked(s->sink->lock());
  s->spool->head().flags &= ~std::uint32_t{buffer::kEnded};
}

void note_untraced(const char* name, Untraced why) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr) return;
  if (!is_child(*s)) leave_word_once(*s);
  add_untraced(s->spool_place, s->first, name, why);
}

bool active() noexcept { return buffer::g_on.load(std::memory_order_relaxed); }

std::uint64_t run_id() noexcept {
  const Session* s = g_session.load();
  return s != nullptr && active() ? s->run : 0;
}

std::uint64_t now_ns() noexcept {
  buffer::ThreadState* t = buffer::this_thread();
  buffer::Spool* spool = buffer::g_spool.load(std::memory_order_acquire);
  if (t == nullptr || spool == nullptr) return 0;
  record::Timeline& line = spool->timeline();
  // Before the first block the rate is not known, and later it drifts: have the line follow now and
  // then.
  const std::uint64_t tick = record::ticks();
  const std::uint64_t rate = line.rate();
  if (line.counter != 0 &&
      (rate == 0 || ((tick - __atomic_load_n(&line.until, __ATOMIC_RELAXED)) >> 32) * rate >
                        (std::uint64_t{1} << 30))) {
    SlowPath slow;
    sink::Sink* sink = g_sink.load();
    if (sink != nullptr) {
      Locked locked(sink->lock());
      if (!sink->closed()) line.follow();
    }
  }
  return line.to_ns(tick);
}

std::uint64_t now() noexcept {
  std::uint64_t ns = now_ns();
  buffer::Spool* spool = buffer::g_spool.load(std::memory_order_acquire);
  if (spool == nullptr) return 0;
  for (std::uint32_t i = spool->head().time_divisor_log10; i > 0; --i) ns /= 10;
  return ns;
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
