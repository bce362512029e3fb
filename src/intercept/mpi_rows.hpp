// The rows of format/mpi_calls.def as the wrappers know them: what each word of a call means.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "format/for_each.hpp"

namespace dft::intercept::mpi {

enum class Layer : std::uint8_t { MPI, MPIIO };

enum class Does : std::uint8_t {
  INIT,
  FINALIZE,
  ABORT,  // does not return
  SEND,
  RECEIVE,
  EXCHANGE,  // sends and receives
  PROBE,
  START,     // requests that were made before
  COMPLETE,  // requests, or tests them
  FREE_REQUEST,
  COLLECTIVE,  // of all ranks of a communicator, in the same order
  OTHER,
  SILENT,  // makes no event
  // Of files; together: by all ranks that opened it.
  TOGETHER,
  READ,
  READ_TOGETHER,
  READ_SHARED,  // at the pointer that the ranks share; ordered: together, in the order of ranks
  READ_ORDERED,
  WRITE,
  WRITE_TOGETHER,
  WRITE_SHARED,
  WRITE_ORDERED,
  BEGIN,  // the first half of a collective, and the second
  BEGIN_ORDERED,
  END_READ,
  END_WRITE,
};

constexpr bool reads(Does does) {
  return (does >= Does::READ && does <= Does::READ_ORDERED) || does == Does::END_READ;
}
constexpr bool writes(Does does) {
  return (does >= Does::WRITE && does <= Does::WRITE_ORDERED) || does == Does::END_WRITE;
}
constexpr bool is_together(Does does) {
  return does == Does::TOGETHER || does == Does::READ_TOGETHER || does == Does::READ_ORDERED ||
         does == Does::WRITE_TOGETHER || does == Does::WRITE_ORDERED || does >= Does::BEGIN;
}
// Where it begins is known to no rank alone.
constexpr bool is_shared(Does does) {
  return does == Does::READ_SHARED || does == Does::READ_ORDERED || does == Does::WRITE_SHARED ||
         does == Does::WRITE_ORDERED || does == Does::BEGIN_ORDERED;
}

enum class Role : std::uint8_t {
  _,
  buffer,
  count,
  type,
  each,
  spread,
  counts,
  types,
  parts,
  count2,
  type2,
  each2,
  counts2,
  types2,
  own2,
  partitions,
  peer,
  tag,
  peer2,
  tag2,
  root,
  comm,
  made,
  freed,
  type_freed,
  started,
  prepared,
  done,
  dones,
  number,
  flag,
  index,
  total,
  indices,
  status,
  statuses,
  file,
  opened,
  closed,
  path,
  info,
  offset,
  length,
  displacement,
  unit,
  amode,
  whence,
  code,
  kCount
};

inline constexpr std::size_t kMostWords = 12;

struct Row {
  const char* name = nullptr;
  Layer layer = Layer::MPI;
  Does does = Does::OTHER;
  std::uint8_t words = 0;
  bool has_counts = false;  // and so a variant with large counts
  std::int8_t at[static_cast<std::size_t>(Role::kCount)] = {};  // of each role; -1: no such word

  [[nodiscard]] constexpr bool has(Role role) const {
    return at[static_cast<std::size_t>(role)] >= 0;
  }
};

consteval Row make_row(const char* name, Layer layer, Does does,
                       std::initializer_list<Role> roles) {
  Row row;
  row.name = name;
  row.layer = layer;
  row.does = does;
  for (std::int8_t& at : row.at) at = -1;
  for (const Role role : roles) {
    if (role != Role::_)
      row.at[static_cast<std::size_t>(role)] = static_cast<std::int8_t>(row.words);
    ++row.words;
  }
  for (const Role role : {Role::count, Role::each, Role::spread, Role::counts, Role::parts})
    row.has_counts |= row.has(role) && !row.has(Role::partitions);
  return row;
}

namespace rows {
using enum Role;
inline constexpr Row kAll[] = {
#define DFT_MPI(layer, does, words, ...) DFT_EACH(DFT_MPI_1, (layer, does, words), __VA_ARGS__)
#define DFT_MPI_1(common, name) DFT_MPI_2(DFT_SPREAD common, name)
#define DFT_MPI_2(...) DFT_MPI_3(__VA_ARGS__)
#define DFT_MPI_3(layer, does, words, name) \
  make_row(#name, Layer::layer, Does::does, {DFT_SPREAD words}),
#include "format/mpi_calls.def"
#undef DFT_MPI_1
#undef DFT_MPI_2
#undef DFT_MPI_3
};
}  // namespace rows
inline constexpr const Row* kRows = rows::kAll;
inline constexpr std::size_t kRowCount = std::size(rows::kAll);

}  // namespace dft::intercept::mpi
