#include "intercept/mpi_words.hpp"

namespace dft::intercept::mpi {
namespace {

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return kNotKnown;
  return product;
}

// The first side of a call, or the second: count, counts of members, and their types.
struct Side {
  Role count;
  Role each;
  Role counts;
  Role type;
  Role types;
};
constexpr Side kFirst{Role::count, Role::each, Role::counts, Role::type, Role::types};
constexpr Side kSecond{Role::count2, Role::each2, Role::counts2, Role::type2, Role::types2};

// The type of nothing may be anything.
std::int64_t bytes_of_count(const Given& given, std::int64_t count, Word type) {
  if (count <= 0) return count == 0 ? 0 : kNotKnown;
  return times(count, type_size(given.lib, type));
}

std::int64_t bytes_of_counts(const Given& given, const Side& side, Role counts,
                             std::int64_t number) {
  if (number < 0) return kNotKnown;
  const bool one_type = given.has(side.type);
  std::int64_t sum = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(number); ++i) {
    const std::int64_t count = given.count_at(counts, i);
    if (count == 0) continue;
    if (one_type) {
      all += count;
      continue;
    }
    const std::int64_t bytes = bytes_of_count(given, count, given.handle_in(side.types, i));
    if (bytes < 0) return kNotKnown;
    sum += bytes;
  }
  return one_type ? bytes_of_count(given, all, given.handle(side.type)) : sum;
}

std::int64_t bytes_of_side(const Given& given, const Side& side, Comm* comm) {
  if (given.has(side.count)) {
    const std::int64_t bytes =
        bytes_of_count(given, given.count(side.count), given.handle(side.type));
    return given.has(Role::partitions) ? times(bytes, given.number(Role::partitions)) : bytes;
  }
  if (comm == nullptr || comm->is_inter) return kNotKnown;
  if (given.has(side.each)) {
    return times(bytes_of_count(given, given.count(side.each), given.handle(side.type)),
                 comm->size);
  }
  if (given.has(side.counts)) return bytes_of_counts(given, side, side.counts, comm->size);
  if (&side == &kSecond) {
    if (!given.has(Role::own2)) return kNotKnown;
    const auto own = static_cast<std::size_t>(comm->rank);
    return bytes_of_count(given, given.count_at(Role::own2, own), given.handle(side.type));
  }
  const bool spreads = given.has(Role::spread);
  if (!spreads && !given.has(Role::parts)) return kNotKnown;
  const std::int32_t degree = degree_of(given.lib, *comm, given.handle(Role::comm));
  if (!spreads) return bytes_of_counts(given, side, Role::parts, degree);
  return times(bytes_of_count(given, given.count(Role::spread), given.handle(side.type)), degree);
}

}  // namespace

std::int64_t bytes_of(const Given& given, Comm* comm) noexcept {
  const Row& row = given.row;
  if (row.has(Role::root) && given.number(Role::root) < 0) return kNotKnown;
  if (row.does == Does::SEND && given.number(Role::peer) < 0) return 0;  // MPI_PROC_NULL
  const bool has_second = row.has(Role::count2) || row.has(Role::each2) || row.has(Role::counts2) ||
                          row.has(Role::own2);
  const bool second =
      row.does == Does::COLLECTIVE && has_second && is_in_place(given.word(Role::buffer));
  return bytes_of_side(given, second ? kSecond : kFirst, comm);
}

}  // namespace dft::intercept::mpi
