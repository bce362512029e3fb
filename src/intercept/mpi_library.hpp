// The MPI library of this process, whichever it is: its handles are words, and what a trace needs to
// know of them is asked of the library itself (PMPI_*), found at run time. On the program's threads,
// inside a wrapper of mpi_calls.cpp, after the program's own call has succeeded with the same handles:
// a wrong handle fails in the program's call and not in ours.
#pragma once
#include <cstddef>
#include <cstdint>

namespace dft::intercept::mpi {

// An argument as it was passed: a pointer, a count, or a handle. The upper half of an int is undefined.
using Word = std::uintptr_t;

// The libraries whose constants are known. The standard does not name the values of MPI_COMM_WORLD,
// MPI_BYTE and the like before MPI 5.
enum class Family : std::uint8_t { kUnknown, kOpenMpi, kMpich, kStandardAbi };

// One function of the library, null where it does not have it.
#define DFT_MPI_ASKED(name, ...) int (*name)(__VA_ARGS__) = nullptr;
struct Asked {
#include "intercept/mpi_asked.def"
};

struct Library {
  Family family = Family::kUnknown;
  Asked ask;
  // Its constants; 0 where they are not known.
  Word world = 0;
  Word no_comm = 0;
  Word no_type = 0;
  Word byte = 0;
  Word no_request = 0;
  std::size_t status_size = 0;  // of MPI_Status
  std::size_t source_at = 0;    // where its MPI_SOURCE is; MPI_TAG follows
  int graph = -1;               // kinds of topologies
  int cart = -1;
  int dist_graph = -1;
  // Where its predefined datatypes are, if they are variables of it.
  Word image_begin = 0;
  Word image_end = 0;
  // Of a handle other than a file's, in the form in which it can be compared.
  [[nodiscard]] Word handle(Word word) const noexcept {
    return family == Family::kMpich ? word & 0xffffffff : word;
  }
  // Of the elements of an array of handles.
  [[nodiscard]] std::size_t handle_size() const noexcept {
    return family == Family::kMpich ? sizeof(int) : sizeof(Word);
  }
  [[nodiscard]] Word handle_at(const void* handles, std::size_t index) const noexcept;
};

// The library, once one of its functions was called. Finds it at the first call.
const Library& library() noexcept;

constexpr std::int64_t kNotKnown = -1;

// MPI_IN_PLACE in C: no buffer of a program is there.
constexpr bool is_in_place(Word buffer) { return buffer == 1 || buffer == ~Word{0}; }
// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE in C.
constexpr bool is_no_pointer(Word pointer) { return pointer < 4096; }

// Bytes of one element, or kNotKnown.
std::int64_t type_size(const Library& lib, Word type) noexcept;

// What a status says.
struct Result {
  std::int64_t source = kNotKnown;  // negative: nobody, or not known
  std::int64_t tag = kNotKnown;
  std::int64_t bytes = kNotKnown;
  bool known = false;
};
Result result_of(const Library& lib, const void* status) noexcept;

}  // namespace dft::intercept::mpi
