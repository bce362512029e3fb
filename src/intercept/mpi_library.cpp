#include "intercept/mpi_library.hpp"

#include <link.h>

#include <atomic>
#include <cstring>
#include <initializer_list>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/elf_object.hpp"

namespace dft::intercept::mpi {
namespace {

constinit Library g_library;
std::atomic<bool> g_found{false};
Lock g_lock;

// Open MPI's constants are the addresses of its variables: those of the first object that has them,
// because a program may have copies that the loader binds everything to.
struct Variables {
  Word world = 0;
  Word no_comm = 0;
  Word no_type = 0;
  Word byte = 0;
  Word no_request = 0;
};

struct Search {
  Library& lib;
  Variables ours;
};

void take_function(const Object& object, const char* name, auto& to) {
  if (to == nullptr)
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(object.function(name));
}
void take_variable(const Object& object, const char* name, Word& to) {
  if (to == 0) to = reinterpret_cast<Word>(object.variable(name));
}

int search(dl_phdr_info* info, std::size_t, void* data) {
  auto& [lib, ours] = *static_cast<Search*>(data);
  Object object;
  if (!describe(*info, object)) return 0;
#define DFT_MPI_ASKED(name, ...) take_function(object, "PMPI_" #name, lib.ask.name);
#include "intercept/mpi_asked.def"
  take_variable(object, "ompi_mpi_comm_world", ours.world);
  take_variable(object, "ompi_mpi_comm_null", ours.no_comm);
  take_variable(object, "ompi_mpi_datatype_null", ours.no_type);
  take_variable(object, "ompi_mpi_byte", ours.byte);
  take_variable(object, "ompi_request_null", ours.no_request);
  if (lib.image_begin == 0 && object.function("PMPI_Init") != nullptr) {
    lib.image_begin = object.begin;
    lib.image_end = object.end;
  }
  return 0;
}

// The library says so itself: one that offers both has two files.
bool is_standard_abi(const Library& lib) {
  int major = 0;
  int minor = 0;
  return lib.ask.Abi_get_version != nullptr && lib.ask.Abi_get_version(&major, &minor) == 0 &&
         major >= 1;
}

bool is_mpich(const Library& lib) {
  static char text[8192 + 1];  // MPI_MAX_LIBRARY_VERSION_STRING is at most this
  int length = 0;
  if (lib.ask.Get_library_version == nullptr || lib.ask.Get_library_version(text, &length) != 0)
    return false;
  text[sizeof text - 1] = '\0';
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation"})
    if (std::strstr(text, name) != nullptr) return true;
  return false;
}

void learn_constants(Library& lib, const Variables& ours) {
  if (is_standard_abi(lib)) {
    lib.family = Family::kStandardAbi;
    lib.world = 0x101;
    lib.no_comm = 0x100;
    lib.no_type = 0x200;
    lib.byte = 0x247;
    lib.no_request = 0x180;
    lib.status_size = 32;
    lib.cart = 211;
    lib.graph = 212;
    lib.dist_graph = 213;
  } else if (ours.world != 0) {
    lib.family = Family::kOpenMpi;
    lib.world = ours.world;
    lib.no_comm = ours.no_comm;
    lib.no_type = ours.no_type;
    lib.byte = ours.byte;
    lib.no_request = ours.no_request;
    lib.status_size = 24;
    lib.cart = 1;
    lib.graph = 2;
    lib.dist_graph = 3;
  } else if (is_mpich(lib)) {
    lib.family = Family::kMpich;
    lib.world = 0x44000000;
    lib.no_comm = 0x04000000;
    lib.no_type = 0x0c000000;
    lib.byte = 0x4c00010d;
    lib.no_request = 0x2c000000;
    lib.status_size = 20;
    lib.source_at = 8;
    lib.graph = 1;
    lib.cart = 2;
    lib.dist_graph = 3;
  }
}

[[gnu::noinline, gnu::cold]] void find_library() noexcept {
  const SlowPath slow;
  const Locked locked(g_lock);
  if (g_found.load(std::memory_order_relaxed)) return;
  Search found{g_library, {}};
  ::dl_iterate_phdr(search, &found);
  learn_constants(g_library, found.ours);
  g_found.store(true, std::memory_order_release);
}

// Sizes of predefined types, which cannot be freed; others are asked for each time.
constexpr std::size_t kKeptSizes = 64;
struct KeptSize {
  std::atomic<Word> type;
  std::atomic<std::int64_t> size;
};
constinit KeptSize g_kept_sizes[kKeptSizes] = {};

bool is_predefined(const Library& lib, Word type) {
  if (lib.family == Family::kOpenMpi) return type >= lib.image_begin && type < lib.image_end;
  return lib.family == Family::kStandardAbi && type < 4096;
}

std::int64_t ask_type_size(const Library& lib, Word type) {
  if (lib.ask.Type_size_x != nullptr) {
    std::int64_t size = kNotKnown;
    return lib.ask.Type_size_x(type, &size) == 0 && size >= 0 ? size : kNotKnown;
  }
  int size = -1;
  if (lib.ask.Type_size == nullptr || lib.ask.Type_size(type, &size) != 0 || size < 0)
    return kNotKnown;
  return size;
}

bool is_no_type(const Library& lib, Word type) {
  if (type == 0 || type == lib.no_type) return true;
  // MPICH's handles say what they are.
  return lib.family == Family::kMpich && ((type >> 26 & 15) != 3 || type >> 30 == 0);
}

}  // namespace

Word Library::handle_at(const void* handles, std::size_t index) const noexcept {
  if (family == Family::kMpich) return static_cast<const std::uint32_t*>(handles)[index];
  return static_cast<const Word*>(handles)[index];
}

const Library& library() noexcept {
  if (!g_found.load(std::memory_order_acquire)) [[unlikely]]
    find_library();
  return g_library;
}

std::int64_t type_size(const Library& lib, Word type) noexcept {
  type = lib.handle(type);
  if (is_no_type(lib, type)) return kNotKnown;
  if (lib.family == Family::kMpich && type >> 30 == 1)
    return static_cast<std::int64_t>(type >> 8 & 0xff);
  if (!is_predefined(lib, type)) return ask_type_size(lib, type);
  KeptSize& kept = g_kept_sizes[(type ^ type >> 9) % kKeptSizes];
  if (kept.type.load(std::memory_order_acquire) == type) [[likely]]
    return kept.size.load(std::memory_order_relaxed);
  const std::int64_t asked = ask_type_size(lib, type);
  Word none = 0;
  if (asked > 0 && kept.type.compare_exchange_strong(none, 1)) {  // the first one stays
    kept.size.store(asked, std::memory_order_release);
    kept.type.store(type, std::memory_order_release);
  }
  return asked;
}

Result result_of(const Library& lib, const void* status) noexcept {
  Result result;
  if (lib.status_size == 0) return result;
  int source = 0;
  int tag = 0;
  const auto* at = static_cast<const std::byte*>(status) + lib.source_at;
  std::memcpy(&source, at, sizeof source);
  std::memcpy(&tag, at + sizeof source, sizeof tag);
  result.source = source;
  result.tag = tag;
  result.known = true;
  std::int64_t bytes = kNotKnown;
  if (lib.ask.Get_count_c != nullptr) {
    if (lib.ask.Get_count_c(status, lib.byte, &bytes) != 0) bytes = kNotKnown;
  } else if (lib.ask.Get_elements_x != nullptr) {
    if (lib.ask.Get_elements_x(status, lib.byte, &bytes) != 0) bytes = kNotKnown;
  } else if (lib.ask.Get_count != nullptr) {
    int count = 0;
    if (lib.ask.Get_count(status, lib.byte, &count) == 0) bytes = count;
  }
  result.bytes = bytes >= 0 ? bytes : kNotKnown;
  return result;
}

}  // namespace dft::intercept::mpi
