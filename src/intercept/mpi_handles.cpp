#include "intercept/mpi_handles.hpp"

#include <sys/mman.h>

#include <charconv>
#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"

namespace dft::intercept::mpi {
namespace {

constexpr Word kFree = 0;
constexpr Word kWasFreed = 1;

// Handles are aligned pointers, or small numbers that differ in their lowest bits.
std::size_t slot_for(Word word, std::size_t slots) {
  return (word * 0x9e3779b97f4a7c15u >> 40) % slots;
}

// A table of entries with a member `word`: found without a lock, changed under one.
template <class Entry, std::size_t kSlots>
struct HandleTable {
  Entry entries[kSlots];

  Entry* find(Word word) noexcept {
    for (std::size_t i = 0, slot = slot_for(word, kSlots); i < kSlots; ++i) {
      Entry& entry = entries[slot];
      const Word seen = entry.word.load(std::memory_order_acquire);
      if (seen == word) return &entry;
      if (seen == kFree) return nullptr;
      slot = (slot + 1) % kSlots;
    }
    return nullptr;
  }
  // A place for a word that is not there, which the caller stores last.
  Entry* place_for(Word word) noexcept {
    for (std::size_t i = 0, slot = slot_for(word, kSlots); i < kSlots; ++i) {
      const Word seen = entries[slot].word.load(std::memory_order_relaxed);
      if (seen == kFree || seen == kWasFreed) return &entries[slot];
      slot = (slot + 1) % kSlots;
    }
    return nullptr;
  }
};

// Constant, as everything here: interception may begin before our constructors run.
constinit Lock g_lock;
constinit HandleTable<Comm, 1024> g_comms = {};
constinit HandleTable<OpenFile, 512> g_files = {};
std::uint32_t g_comms_met = 0;

// ---- Ranks of communicators

// Memory outside of the program's heap, for the time of one question.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : bytes_(bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at_ = at != MAP_FAILED ? static_cast<int*>(at) : nullptr;
  }
  ~Scratch() {
    if (at_ != nullptr) ::munmap(at_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] int* ints() const { return at_; }

 private:
  std::size_t bytes_;
  int* at_;
};

// Lists of ranks are used again, but never unmapped: another thread may be reading one.
constexpr std::size_t kMostListBytes = std::size_t{16} << 20;
std::size_t g_list_bytes = 0;
struct SpareList {
  std::int32_t* list;
  std::uint32_t room;
};
SpareList g_spare[64];

std::int32_t* list_for(std::uint32_t count, std::uint32_t& room) {
  for (SpareList& spare : g_spare) {
    if (spare.list == nullptr || spare.room < count) continue;
    std::int32_t* list = spare.list;
    room = spare.room;
    spare = {};
    return list;
  }
  const std::size_t bytes = (count * sizeof(std::int32_t) + 4095) & ~std::size_t{4095};
  if (g_list_bytes + bytes > kMostListBytes) return nullptr;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  g_list_bytes += bytes;
  room = static_cast<std::uint32_t>(bytes / sizeof(std::int32_t));
  return static_cast<std::int32_t*>(at);
}

void give_back_list(Comm& comm) {
  if (comm.list == nullptr) return;
  for (SpareList& spare : g_spare) {
    if (spare.list != nullptr) continue;
    spare = {comm.list, comm.list_room};
    break;
  }
  comm.list = nullptr;
}

bool is_initialized(const Library& lib) {
  int flag = 0;
  if (lib.ask.Initialized == nullptr || lib.ask.Initialized(&flag) != 0 || flag == 0) return false;
  return lib.ask.Finalized == nullptr || (lib.ask.Finalized(&flag) == 0 && flag == 0);
}

// The ranks of a group in MPI_COMM_WORLD.
bool translate(const Library& lib, Word word, bool remote, int count, const int* from, int* to) {
  const Asked& ask = lib.ask;
  if (lib.world == 0 || ask.Comm_group == nullptr || ask.Group_translate_ranks == nullptr ||
      ask.Group_free == nullptr || (remote && ask.Comm_remote_group == nullptr) ||
      !is_initialized(lib)) {
    return false;
  }
  Word own = 0;
  Word world = 0;
  if ((remote ? ask.Comm_remote_group(word, &own) : ask.Comm_group(word, &own)) != 0) return false;
  bool fine = ask.Comm_group(lib.world, &world) == 0;
  if (fine) {
    fine = ask.Group_translate_ranks(own, count, from, world, to) == 0;
    ask.Group_free(&world);
  }
  ask.Group_free(&own);
  return fine;
}

void learn_ranks(const Library& lib, Comm& comm, Word word) {
  const int count = comm.size;
  comm.has_ranks = false;
  if (comm.is_world) {
    comm.has_ranks = true;
    comm.first = 0;
    comm.stride = 1;
    return;
  }
  if (count <= 0) return;
  const Scratch scratch(static_cast<std::size_t>(count) * 2 * sizeof(int));
  int* from = scratch.ints();
  if (from == nullptr) return;
  int* to = from + count;
  for (int i = 0; i < count; ++i) from[i] = i;
  if (!translate(lib, word, comm.is_inter, count, from, to)) return;
  comm.first = to[0];
  comm.stride = count > 1 ? to[1] - to[0] : 1;
  bool regular = true;
  for (int i = 0; i < count; ++i) {
    if (to[i] < 0) return;  // not in MPI_COMM_WORLD: it was spawned, or connected
    regular &= to[i] == comm.first + i * comm.stride;
  }
  if (!regular) {
    comm.list = list_for(static_cast<std::uint32_t>(count), comm.list_room);
    if (comm.list == nullptr) return;
    std::memcpy(comm.list, to, static_cast<std::size_t>(count) * sizeof(int));
  }
  comm.has_ranks = true;
}

// How often communicators of these ranks have been met.
constexpr std::size_t kKinds = 1024;
struct Kind {
  std::uint64_t hash;
  std::int32_t met;
};
Kind g_kinds[kKinds];

std::int32_t count_kind(const Comm& comm) {
  if (!comm.has_ranks || comm.is_inter) return -1;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::int64_t i = 0; i < comm.size; ++i)
    hash = (hash ^ static_cast<std::uint64_t>(world_rank(comm, i) + 1)) * 0x100000001b3u;
  if (hash == 0) hash = 1;
  for (std::size_t i = 0, slot = hash % kKinds; i < kKinds; ++i, slot = (slot + 1) % kKinds) {
    Kind& kind = g_kinds[slot];
    if (kind.hash == 0) kind.hash = hash;
    if (kind.hash == hash) return kind.met++;
  }
  return -1;
}

// Fills in what the library says of it. False if it says nothing.
bool learn(const Library& lib, Comm& comm, Word word) {
  const Asked& ask = lib.ask;
  int rank = 0;
  int size = 0;
  if (ask.Comm_rank == nullptr || ask.Comm_size == nullptr || ask.Comm_rank(word, &rank) != 0 ||
      ask.Comm_size(word, &size) != 0) {
    return false;
  }
  int inter = 0;
  if (ask.Comm_test_inter == nullptr || ask.Comm_test_inter(word, &inter) != 0) inter = 0;
  comm.rank = rank;
  comm.own_size = size;
  comm.size = size;
  comm.is_inter = inter != 0;
  if (comm.is_inter) {
    int remote = 0;
    if (ask.Comm_remote_size == nullptr || ask.Comm_remote_size(word, &remote) != 0) remote = 0;
    comm.size = remote;
  }
  comm.is_world = word == lib.world;
  comm.degree = -1;
  learn_ranks(lib, comm, word);
  comm.nth = count_kind(comm);
  return true;
}

Comm* add(const Library& lib, Word word) noexcept {
  const SlowPath slow;
  const Locked locked(g_lock);
  if (Comm* known = g_comms.find(word)) return known;
  Comm* comm = g_comms.place_for(word);
  if (comm == nullptr || !learn(lib, *comm, word)) return nullptr;
  comm->number = g_comms_met++;
  comm->collectives.store(0, std::memory_order_relaxed);
  comm->announced.store(0, std::memory_order_relaxed);
  comm->word.store(word, std::memory_order_release);
  return comm;
}

}  // namespace

[[gnu::noinline, gnu::cold]] Comm* new_comm(const Library& lib, Word word) noexcept {
  word = lib.handle(word);
  if (word <= kWasFreed || lib.no_comm == 0 || word == lib.no_comm) return nullptr;
  forget_comm(lib, word);  // the handle of one that was freed unseen, by a tool
  return add(lib, word);
}

Comm* comm_of(const Library& lib, Word word) noexcept {
  word = lib.handle(word);
  if (word <= kWasFreed || word == lib.no_comm) return nullptr;
  Comm* comm = g_comms.find(word);
  if (comm == nullptr) [[unlikely]]
    return add(lib, word);
  return comm;
}

void forget_comm(const Library& lib, Word word) noexcept {
  const SlowPath slow;
  const Locked locked(g_lock);
  word = lib.handle(word);
  Comm* comm = word > kWasFreed ? g_comms.find(word) : nullptr;
  if (comm == nullptr) return;
  give_back_list(*comm);
  comm->word.store(kWasFreed, std::memory_order_release);
}

std::int64_t world_rank(const Comm& comm, std::int64_t peer) noexcept {
  if (!comm.has_ranks || peer < 0 || peer >= comm.size) return -1;
  return comm.list != nullptr ? comm.list[peer] : comm.first + peer * comm.stride;
}

std::int32_t degree_of(const Library& lib, Comm& comm, Word word) noexcept {
  if (comm.degree >= 0) return comm.degree;
  word = lib.handle(word);
  const Asked& ask = lib.ask;
  int kind = -2;
  if (lib.cart < 0 || ask.Topo_test == nullptr || ask.Topo_test(word, &kind) != 0) return -1;
  int count = -1;
  if (kind == lib.cart) {
    if (ask.Cartdim_get != nullptr && ask.Cartdim_get(word, &count) == 0) count *= 2;
  } else if (kind == lib.graph) {
    if (ask.Graph_neighbors_count != nullptr) ask.Graph_neighbors_count(word, comm.rank, &count);
  } else if (kind == lib.dist_graph) {
    int in = 0;
    int weighted = 0;
    if (ask.Dist_graph_neighbors_count != nullptr)
      ask.Dist_graph_neighbors_count(word, &in, &count, &weighted);
  }
  comm.degree = count;
  return count;
}

std::size_t write_ranks(const Comm& comm, char* to, std::size_t room) noexcept {
  if (!comm.has_ranks || comm.is_inter) return 0;
  char* at = to;
  char* const end = to + room;
  for (std::int64_t i = 0; i < comm.size;) {
    const std::int64_t first = world_rank(comm, i);
    std::int64_t last = first;
    std::int64_t next = i + 1;
    while (next < comm.size && world_rank(comm, next) == last + 1) {
      ++last;
      ++next;
    }
    if (end - at < 48) return 0;
    if (i != 0) *at++ = ',';
    at = std::to_chars(at, end, first).ptr;
    if (last != first) {
      *at++ = '-';
      at = std::to_chars(at, end, last).ptr;
    }
    i = next;
  }
  return static_cast<std::size_t>(at - to);
}

// ---- Files

OpenFile* file_of_handle(Word word) noexcept {
  return word > kWasFreed ? g_files.find(word) : nullptr;
}

OpenFile* new_file(Word word) noexcept {
  const SlowPath slow;
  const Locked locked(g_lock);
  if (word <= kWasFreed) return nullptr;
  OpenFile* entry = g_files.find(word);
  if (entry == nullptr) entry = g_files.place_for(word);
  if (entry == nullptr) return nullptr;
  entry->file = &g_nameless;
  entry->comm = -1;
  entry->unit = 1;
  entry->plain_view = true;
  entry->begun_offset = kNotKnown;
  entry->begun_bytes = kNotKnown;
  entry->word.store(word, std::memory_order_release);
  return entry;
}

void forget_file(Word word) noexcept {
  const SlowPath slow;
  const Locked locked(g_lock);
  OpenFile* entry = file_of_handle(word);
  if (entry != nullptr) entry->word.store(kWasFreed, std::memory_order_release);
}

// ---- Requests

namespace {

// The handles stand apart from the rest, so that a search reads few cache lines. Within kNear places
// of its own, every request with a handle is found.
constexpr std::size_t kRequests = 8192;
constexpr std::size_t kNear = 64;
constexpr Word kBeingChanged = ~Word{0};
constinit std::atomic<Word> g_request_words[kRequests] = {};
constinit Request g_requests[kRequests] = {};
std::atomic<std::uint64_t> g_request_numbers{0};

// Claims the request, which the caller then owns until it stores a word again. -1: there is none.
std::ptrdiff_t claim(Word word, Word where) noexcept {
  const std::size_t home = slot_for(word, kRequests);
  for (;;) {
    std::ptrdiff_t best = -1;
    std::uint64_t oldest = ~std::uint64_t{0};
    for (std::size_t i = 0; i < kNear; ++i) {
      const std::size_t slot = (home + i) % kRequests;
      if (g_request_words[slot].load(std::memory_order_acquire) != word) continue;
      const Request& request = g_requests[slot];
      const std::uint64_t age = request.where == where ? 0 : request.number;
      if (age >= oldest) continue;
      best = static_cast<std::ptrdiff_t>(slot);
      oldest = age;
    }
    if (best < 0) return -1;
    Word seen = word;
    if (g_request_words[best].compare_exchange_strong(seen, kBeingChanged)) return best;
  }
}

}  // namespace

std::uint64_t next_request_number() noexcept {
  return g_request_numbers.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool keep_request(const Request& request) noexcept {
  const std::size_t home = slot_for(request.word, kRequests);
  for (std::size_t i = 0; i < kNear; ++i) {
    const std::size_t slot = (home + i) % kRequests;
    Word seen = kFree;
    if (!g_request_words[slot].compare_exchange_strong(seen, kBeingChanged)) continue;
    g_requests[slot] = request;
    g_request_words[slot].store(request.word, std::memory_order_release);
    return true;
  }
  return false;
}

bool take_request(Word word, Word where, Request& to) noexcept {
  const std::ptrdiff_t slot = claim(word, where);
  if (slot < 0) return false;
  to = g_requests[slot];
  if (to.persistent) g_requests[slot].start = 0;
  g_request_words[slot].store(to.persistent ? word : kFree, std::memory_order_release);
  return true;
}

bool restart_request(Word word, Word where, const Request& when) noexcept {
  const std::ptrdiff_t slot = claim(word, where);
  if (slot < 0) return false;
  Request& request = g_requests[slot];
  const bool known = request.persistent;
  if (known) {
    request.start = when.start;
    request.live = when.live;
    request.number = when.number;
    request.parent = when.parent;
    request.level = when.level;
  }
  g_request_words[slot].store(word, std::memory_order_release);
  return known;
}

void forget_request(Word word, Word where) noexcept {
  const std::ptrdiff_t slot = claim(word, where);
  if (slot >= 0) g_request_words[slot].store(kFree, std::memory_order_release);
}

void forget_handles() noexcept {
  const SlowPath slow;
  const Locked locked(g_lock);
  for (Comm& comm : g_comms.entries) {
    give_back_list(comm);
    comm.word.store(kFree);
  }
  for (OpenFile& file : g_files.entries) file.word.store(kFree);
  for (std::atomic<Word>& word : g_request_words) word.store(kFree);
  for (Kind& kind : g_kinds) kind = {};
}

}  // namespace dft::intercept::mpi
