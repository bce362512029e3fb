// The words of one call of MPI, and what they say. Made by a wrapper on the program's thread.
#pragma once
#include "intercept/mpi_handles.hpp"
#include "intercept/mpi_library.hpp"
#include "intercept/mpi_rows.hpp"

namespace dft::intercept::mpi {

struct Given {
  const Row& row;
  const Library& lib;
  Word* words;
  bool large;  // counts are 64 bits wide

  [[nodiscard]] bool has(Role role) const { return row.has(role); }
  [[nodiscard]] Word& word(Role role) const {
    return words[static_cast<unsigned char>(row.at[static_cast<std::size_t>(role)])];
  }
  template <class T>
  [[nodiscard]] const T* at(Role role) const {
    return reinterpret_cast<const T*>(word(role));
  }
  [[nodiscard]] bool is_given(Role role) const { return has(role) && !is_no_pointer(word(role)); }
  [[nodiscard]] std::int64_t number(Role role) const { return static_cast<int>(word(role)); }
  [[nodiscard]] std::int64_t wide_number(Role role) const {
    return static_cast<std::int64_t>(word(role));
  }
  [[nodiscard]] std::int64_t count(Role role) const {
    return large || has(Role::partitions) ? wide_number(role) : number(role);
  }
  [[nodiscard]] std::int64_t count_at(Role role, std::size_t i) const {
    return large ? at<std::int64_t>(role)[i] : at<int>(role)[i];
  }
  // A handle that a word is, or points to.
  [[nodiscard]] Word handle(Role role) const { return lib.handle(word(role)); }
  [[nodiscard]] Word handle_in(Role role, std::size_t i = 0) const {
    return lib.handle_at(at<void>(role), i);
  }
  [[nodiscard]] Word address_in(Role role, std::size_t i) const {
    return word(role) + i * lib.handle_size();
  }
  // Files are pointers in every library.
  [[nodiscard]] Word file_in(Role role) const { return *at<Word>(role); }
};

// The bytes that this rank puts into the call, or kNotKnown. Words that the call does not look at may
// be anything: they are not looked at here either. After the call has succeeded.
std::int64_t bytes_of(const Given& given, Comm* comm) noexcept;
constexpr bool has_bytes(const Row& row) { return row.has_counts || row.has(Role::partitions); }

}  // namespace dft::intercept::mpi
