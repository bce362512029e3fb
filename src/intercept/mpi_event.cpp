#include "intercept/mpi_event.hpp"

#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/mpi_names.hpp"
#include "session/session.hpp"

namespace dft::intercept::mpi {

using record::ArgType;

void open_event(Event& event, std::uint32_t name, std::uint32_t category) noexcept {
  if (buffer::try_open(event.span, name, category)) [[likely]]
    return;
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr) {
    event.span.live = 0;
    return;
  }
  buffer::take_back(*t);
  buffer::open_span(*t, event.span, buffer::new_id(*t), name, category);
  event.span.draft.head.start = record::ticks();
}

void close_event(Event& event, std::uint64_t end) noexcept {
  if (event.span.live == 0) return;
  if (!buffer::try_close_at(event.span, end)) [[unlikely]]
    buffer::close_span(event.span, end);
}

namespace {

constinit std::atomic<std::uint32_t> g_comm_name{0};

// What a communicator is, once per trace: its ranks tell which calls of other processes belong to it.
[[gnu::noinline, gnu::cold]] void announce_comm(Comm& comm) noexcept {
  const SlowPath slow;
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr) return;
  const std::uint64_t stamp = buffer::announcing(*t);
  constexpr std::size_t kLongestRanks = std::size_t{16} << 10;
  static char ranks[kLongestRanks];
  static Lock lock;
  const Locked locked(lock);
  buffer::Draft draft;
  draft.init();
  const auto put = [&](Key key, std::int64_t value) {
    draft.put(g_ids.key[static_cast<std::size_t>(key)], ArgType::kInt,
              static_cast<std::uint64_t>(value));
  };
  put(Key::comm, comm.number);
  put(Key::rank, comm.rank);
  put(Key::size, comm.own_size);
  if (comm.is_inter) put(Key::remote_size, comm.size);
  const std::size_t length = write_ranks(comm, ranks, sizeof ranks);
  if (length != 0 && comm.nth >= 0) {
    draft.put_bytes(g_ids.key[static_cast<std::size_t>(Key::ranks)], ArgType::kString,
                    {ranks, length});
    put(Key::nth, comm.nth);
  }
  if (comm.is_world) {
    draft.put_bytes(g_ids.key[static_cast<std::size_t>(Key::name)], ArgType::kString,
                    "MPI_COMM_WORLD");
  }
  draft.head = buffer::make_head(*t, record::Kind::kInstant, 0, record::ticks(), 0);
  draft.head.name = interned(g_comm_name, "MPI_Comm");
  draft.head.category = category_of(Layer::MPI);
  if (buffer::write_record(t->live, draft.head, draft.args(), draft.args_size()))
    comm.announced.store(stamp);
  draft.clear();
  if (comm.is_world) session::set_rank(comm.rank);  // the trace may have begun after MPI_Init
}

}  // namespace

void announce_if_new(Comm& comm) noexcept {
  if (!is_watched(Layer::MPI)) return;
  const buffer::ThreadState* t = buffer::this_thread();
  if (t != nullptr && comm.announced.load(std::memory_order_relaxed) != buffer::announcing(*t))
      [[unlikely]] {
    announce_comm(comm);
  }
}

// ROMIO accepts a prefix that names the file system.
const char* without_prefix(const char* path) noexcept {
  const char* at = path;
  while ((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')) ++at;
  return *at == ':' && at - path >= 2 && at[1] != '\0' ? at + 1 : path;
}

// The hints in effect, as "key=value;...".
void put_hints(Event& event, const Given& given, Word file) noexcept {
  const Asked& ask = given.lib.ask;
  if (ask.File_get_info == nullptr || ask.Info_get_nkeys == nullptr ||
      ask.Info_get_nthkey == nullptr || ask.Info_get == nullptr || ask.Info_free == nullptr) {
    return;
  }
  constexpr int kMostHints = 64;
  constexpr std::size_t kLongestKey = 256;  // MPI_MAX_INFO_KEY is at most this
  constexpr std::size_t kLongestValue = 128;
  Word info = 0;
  int keys = 0;
  if (ask.File_get_info(file, &info) != 0) return;
  char text[1024];
  std::size_t used = 0;
  if (ask.Info_get_nkeys(info, &keys) != 0) keys = 0;
  for (int i = 0; i < keys && i < kMostHints; ++i) {
    char key[kLongestKey + 1] = {};
    char value[kLongestValue + 1] = {};
    int found = 0;
    if (ask.Info_get_nthkey(info, i, key) != 0 ||
        ask.Info_get(info, key, kLongestValue, value, &found) != 0 || found == 0) {
      continue;
    }
    const std::size_t size = std::strlen(key) + std::strlen(value) + 2;
    if (used + size > sizeof text) break;
    if (used != 0) text[used++] = ';';
    for (const char* p = key; *p != '\0';) text[used++] = *p++;
    text[used++] = '=';
    for (const char* p = value; *p != '\0';) text[used++] = *p++;
  }
  ask.Info_free(&info);
  if (used != 0) event.put_text(Key::hints, {text, used});
}

std::int64_t byte_offset(const Given& given, const OpenFile& file, Word handle,
                         std::int64_t bytes) noexcept {
  const Asked& ask = given.lib.ask;
  const Does does = given.row.does;
  if (is_shared(does)) return kNotKnown;
  std::int64_t offset = kNotKnown;
  if (given.has(Role::offset)) {
    offset = given.wide_number(Role::offset);
  } else {
    // At the own pointer, which has moved on by what was asked for.
    if (ask.File_get_position == nullptr || bytes < 0 || file.unit <= 0 || bytes % file.unit != 0 ||
        ask.File_get_position(handle, &offset) != 0) {
      return kNotKnown;
    }
    offset -= bytes / file.unit;
  }
  if (offset < 0) return kNotKnown;
  if (file.plain_view) return offset;
  std::int64_t absolute = kNotKnown;
  if (ask.File_get_byte_offset == nullptr ||
      ask.File_get_byte_offset(handle, offset, &absolute) != 0) {
    return kNotKnown;
  }
  return absolute;
}

}  // namespace dft::intercept::mpi
