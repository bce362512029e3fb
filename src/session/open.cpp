// Opening: from a session's settings to a spool under a claimed name, with its sink and writer.
// Under the session's lock, when a session starts and in a forked child at its first event.
#include <cstdio>
#include <cstring>
#include <new>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "format/hash.hpp"
#include "recovery/owner.hpp"
#include "recovery/recover.hpp"
#include "session/session.hpp"
#include "session/state.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {
namespace {

constexpr std::size_t kPath = kClaimPath;
constexpr std::uint64_t kOpeningIds = 6;
constexpr std::uint64_t kExtraIds = 8;

std::uint32_t log10_of(TimeMetric metric) { return 3 * static_cast<std::uint32_t>(metric); }

// A file beside the trace that names a spool elsewhere, with the key that the spool must hold.
bool write_spool_pointer(const char* path, const char* spool, std::uint64_t key) {
  const int fd = sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  char text[kPath + 64];
  const int n = std::snprintf(text, sizeof text, "%s%s\n%016llx\n", recovery::kSpoolPointerStart,
                              spool, static_cast<unsigned long long>(key));
  const bool fine = sys::write_at(fd, text, static_cast<std::size_t>(n), 0) == 0;
  sys::close(fd);
  if (!fine) sys::unlink(path);
  return fine;
}

bool random_path(char (&to)[kPath], const char* directory, const char* prefix) {
  char base[64];
  std::snprintf(base, sizeof base, "%sdftracer-%016llx.spool", prefix,
                static_cast<unsigned long long>(random64()));
  return sink::join(to, sizeof to, directory, "", base, "");
}

// A new spool, and where it is not beside the trace the file that points to it. Both are removed
// again unless commit() says that they are in use.
class PendingSpool {
 public:
  PendingSpool() = default;
  ~PendingSpool() {
    if (spool_ == nullptr) return;
    if (pointer_[0] != '\0') sys::unlink(pointer_);
    spool_->retire(true);
  }
  PendingSpool(const PendingSpool&) = delete;
  PendingSpool& operator=(const PendingSpool&) = delete;

  // 0, or -errno.
  int make(const Session& s, const buffer::Owner& owner, std::size_t preamble_size);
  // Gives the spool, or what points to it, the name that goes with the trace's, which it chooses.
  bool claim_name(Session& s, bool exact, Existing& existing);

  [[nodiscard]] buffer::Spool& spool() { return *spool_; }
  void commit(char (&pointer)[kPath]) {
    std::memcpy(pointer, pointer_, sizeof pointer);
    spool_ = nullptr;
  }

 private:
  buffer::Spool* spool_ = nullptr;
  char path_[kPath] = {};
  char pointer_[kPath] = {};
};

int PendingSpool::make(const Session& s, const buffer::Owner& owner, std::size_t preamble_size) {
  if (!random_path(path_, s.spool_place, s.spool_elsewhere ? "" : ".")) return -ENAMETOOLONG;
  int error = 0;
  spool_ = buffer::Spool::create(path_, preamble_size, &error);
  if (spool_ == nullptr) return error;
  buffer::SpoolHead& head = spool_->head();
  head.owner = owner;
  head.flags = (s.place.compressed ? buffer::kCompressed : 0u) |
               (s.config.disable_tids ? buffer::kNoThreadIds : 0u);
  head.run = s.run;
  head.host_hash = format::hash16(head.owner.host);
  head.time_divisor_log10 = log10_of(s.config.time_metric);
  head.file_mode = static_cast<std::uint32_t>(s.config.file_mode);
  head.compression_level = static_cast<std::uint32_t>(s.config.compression_level);
  spool_->clock_map().start(s.rate);
  if (!s.spool_elsewhere) return 0;
  head.pointer_key = random64() | 1;
  char pointer[kPath];
  if (!random_path(pointer, s.place.directory, ".") ||
      !write_spool_pointer(pointer, path_, head.pointer_key)) {
    return -EACCES;
  }
  std::memcpy(pointer_, pointer, sizeof pointer_);
  return 0;
}

bool PendingSpool::claim_name(Session& s, bool exact, Existing& existing) {
  char claimed[kPath];
  const bool elsewhere = pointer_[0] != '\0';
  if (!claim(s.place, spool_->head(), s.trace_name, elsewhere ? pointer_ : path_, exact, claimed,
             existing, s.recovered_for)) {
    return false;
  }
  if (elsewhere) {
    std::memcpy(pointer_, claimed, sizeof pointer_);
  } else {
    spool_->moved_to(claimed);
  }
  return true;
}

// The opening lines, for a file that is new or continued. Returns how many; 0 without memory.
std::uint64_t compose_preamble(const Session& s, const buffer::Owner& owner, std::uint64_t first_id,
                               std::uint64_t start_ns, bool opens_file, sink::MmapBuffer& out) {
  out.resize(0);
  return write_preamble(
      {&s.facts, &owner, format::hash16(owner.host), s.run, recovery::process_key(owner), start_ns,
       first_id, first_id + kOpeningIds + 256, log10_of(s.config.time_metric), s.rank, opens_file,
       s.config.inc_metadata, s.config.core_affinity},
      out);
}

// Goes on with a trace of this process, or removes what a finished run left under the name. Returns
// the id of the first record.
std::uint64_t continue_or_replace(Session& s, buffer::SpoolHead& head, const Existing& existing,
                                  bool exact) {
  if (existing.what != Existing::What::kSameProcess) {
    if (exact) clear_finished(s.place, head.trace_name, existing);
    return kFirstId;
  }
  s.run = existing.run;
  head.run = s.run;
  head.trace_inode = existing.inode;
  head.trace_size = existing.size;
  // Ids go on. After an exec their number is not known; no file holds more than four per byte.
  return s.next_id > kFirstId ? s.next_id : existing.size * 4;
}

void put_preamble(buffer::Spool& spool, sink::MmapBuffer& text, std::uint64_t lines,
                  std::uint64_t first_id) {
  buffer::SpoolHead& head = spool.head();
  std::memcpy(spool.preamble(), text.data(), text.size());
  head.preamble_size = text.size();
  head.preamble_lines = lines;
  head.next_id.store(first_id + kOpeningIds);
}

// Null without memory.
Pipeline* make_pipeline(const Session& s, buffer::Spool& spool) {
  void* memory = sys::map_private(sizeof(Pipeline));
  sink::Sink* sink = sink::Sink::create(spool, s.place.directory, s.config.write_buffer_size);
  if (memory == nullptr || sink == nullptr || !buffer::g_names.publish_to(&spool)) return nullptr;
  // Where calls are intercepted, those that change a process's credentials are among them.
  return new (memory) Pipeline{spool, *sink, sink::Writer(*sink, spool, !s.config.disable_io)};
}

// From here on threads record into the spool, and recoverers take it for a whole one.
void publish(Session& s) {
  Pipeline& pipeline = *s.pipeline;
  pipeline.sink.heartbeat();
  pipeline.spool.head().ready.store(1, std::memory_order_release);
  g_pipeline.store(s.pipeline);
  buffer::g_spool.store(&pipeline.spool, std::memory_order_release);
  buffer::new_generation();
  if (!s.config.disable_io) {
    sys::g_own_read.store(0);
    sys::g_own_written.store(0);
    s.io.begin();
  }
  // The starting thread takes the ids after those of the opening records; further
  // metadata the next.
  if (buffer::ThreadState* t = buffer::this_thread()) buffer::next_ids(*t);
  pipeline.spool.head().next_id.fetch_add(kExtraIds);
  if (const Observer* observer = g_observer.load()) observer->opened();
}

}  // namespace

int open_spool(Session& s, bool may_be_exact) {
  buffer::Owner owner{};
  recovery::describe_self(owner);
  s.key = recovery::process_key(owner);
  sink::MmapBuffer preamble;
  if (compose_preamble(s, owner, kFirstId, ~std::uint64_t{0}, true, preamble) == 0) return -ENOMEM;
  PendingSpool pending;
  // Room for the ids of a continued file, which have more digits than those of a new one.
  const int error = pending.make(s, owner, preamble.size() + 512);
  if (error != 0) return error;
  Existing existing{};
  const bool exact = may_be_exact && (s.place.exact || s.trace_name[0] != '\0');
  if (!pending.claim_name(s, exact, existing)) return -EACCES;
  buffer::SpoolHead& head = pending.spool().head();
  const std::uint64_t first_id = continue_or_replace(s, head, existing, exact);
  const bool continued = existing.what == Existing::What::kSameProcess;
  // From the trace's first start record on: an exec goes on with the trace.
  if (!s.cpu_counts) {
    s.cpu_before = continued ? 0 : cpu_time();
    s.cpu_wait_before = continued ? 0 : cpu_wait_time();
  }
  s.cpu_counts = true;
  const std::uint64_t lines = compose_preamble(
      s, owner, first_id, pending.spool().clock_map().knots[0].ns, !continued, preamble);
  put_preamble(pending.spool(), preamble, lines, first_id);
  std::memcpy(s.trace_name, head.trace_name, sizeof s.trace_name);
  Pipeline* pipeline = make_pipeline(s, pending.spool());
  if (pipeline == nullptr) return -ENOMEM;
  pending.commit(s.spool_pointer);
  s.pipeline = pipeline;
  s.reported.lost = 0;
  s.given_to = 0;
  s.pid = owner.pid;
  publish(s);
  if (is_talkative(s))
    say("recording process %u into %s/%s", s.pid, s.place.directory, s.trace_name);
  return 0;
}

}  // namespace dft::session
