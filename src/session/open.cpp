#include <cstdio>
#include <cstring>
#include <new>

#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "format/hash.hpp"
#include "recovery/owner.hpp"
#include "recovery/recover.hpp"
#include "session/state.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {
namespace {

constexpr std::size_t kPath = kClaimPath;
constexpr std::uint64_t kOpeningIds = 6;
constexpr std::uint64_t kExtraIds = 8;

std::uint32_t log10_of(TimeMetric metric) { return 3 * static_cast<std::uint32_t>(metric); }

bool write_note(const char* path, const char* spool, std::uint64_t key) {
  const int fd = sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  char text[kPath + 64];
  const int n = std::snprintf(text, sizeof text, "%s%s\n%016llx\n", recovery::kNoteStart, spool,
                              static_cast<unsigned long long>(key));
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
  head.file_mode = static_cast<std::uint32_t>(s.config.file_mode);
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

}  // namespace

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
  if (elsewhere) head.note_key = random64() | 1;
  spool->timeline().start(s.rate);

  char note[kPath] = {};
  if (elsewhere) {
    std::snprintf(base, sizeof base, ".dftracer-%016llx.spool",
                  static_cast<unsigned long long>(random64()));
    if (!sink::join(note, sizeof note, s.place.directory, "", base, "") ||
        !write_note(note, passing, head.note_key)) {
      spool->retire(true);
      return -EACCES;
    }
  }
  Existing existing{};
  const bool exact = may_be_exact && (s.place.exact || s.trace_name[0] != '\0');
  char path[kPath];
  if (!claim(s.place, head, s.trace_name, elsewhere ? note : passing, exact, path, existing,
             s.finished_for)) {
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
  // From the trace's first start record on: an exec goes on with the trace.
  if (!s.cpu_counts) s.cpu_before = continued ? 0 : cpu_time();
  s.cpu_counts = true;
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
  s.reported.lost = 0;
  s.given_to = 0;
  // Where calls are intercepted, those that change a process's rights are among them.
  s.writer = new (memory) sink::Writer(*s.sink, *spool, !s.config.disable_io);
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
    s.io.begin();
  }
  // The thread that starts takes the ids after the opening records'; what else opens the file comes
  // next.
  if (buffer::ThreadState* t = buffer::this_thread()) buffer::next_ids(*t);
  head.next_id.fetch_add(kExtraIds);
  if (is_talkative(s))
    say("recording process %u into %s/%s", s.pid, s.place.directory, s.trace_name);
  return 0;
}

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
  s.reported = {};
  s.finished_for = {};
  s.cpu_counts = false;
  buffer::reset_tallies(buffer::t_thread.tally);
}

}  // namespace dft::session
