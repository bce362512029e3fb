// The rows of the table of calls (format/calls.def) as the wrappers know them: one per symbol, with
// its real function. Included by everything that wraps; on the program's threads.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/hot.hpp"

namespace dft::intercept {

enum class Category : std::uint8_t {
#define DFT_CATEGORY(name) name,
#include "format/categories.def"
  kCount
};

// Which libc a call goes to: the program's own, or that of another link-map namespace
// (dlmopen.hpp), with other functions, other streams and another errno. The wrappers are compiled
// for both, from the same sources.
enum class Libc : std::uint8_t { kOwn, kOther };
template <Libc>
struct RowsOf {
  enum class Row : std::uint16_t {
#define DFT_ROW(category, symbol, shown) symbol,
#include "format/calls.def"
    kCount
  };
};
using OwnRow = RowsOf<Libc::kOwn>::Row;
using OtherRow = RowsOf<Libc::kOther>::Row;
#ifdef DFT_OTHER_LIBC
using Row = OtherRow;
#else
using Row = OwnRow;
#endif
inline constexpr auto kRows = static_cast<std::size_t>(OwnRow::kCount);
template <class AnyRow>
constexpr std::size_t index_of(AnyRow row) {
  return static_cast<std::size_t>(row);
}
template <auto row>
inline constexpr bool kIsOwn = std::is_same_v<decltype(row), OwnRow>;

struct alignas(32) RowState {
  // Looked up on first use: calls arrive before our constructors have run.
  std::atomic<void*> real;
  // Ids of the shapes of its short records, without a file and with one; 0 until first used.
  std::atomic<std::uint32_t> shape[2];
  std::atomic<std::uint32_t> name;  // its interned name; 0 until first used
};
[[gnu::visibility("hidden")]] extern RowState g_row_state[kRows];
void* find_real(OwnRow row) noexcept;
void find_all_real() noexcept;  // of the program's own libc
void* find_real(OtherRow row) noexcept;
int errno_of_other() noexcept;
// Stand in for a function that this libc does not have: they fail with ENOSYS.
long missing() noexcept;
void* missing_pointer() noexcept;

template <class F>
struct ReturnOf;
template <class R, class... A>
struct ReturnOf<R(A...)> {
  using type = R;
};

template <class F>
F* found_or_missing(void* fn) noexcept {
  if (fn == nullptr) {
    fn = std::is_pointer_v<typename ReturnOf<F>::type> ? reinterpret_cast<void*>(missing_pointer)
                                                       : reinterpret_cast<void*>(missing);
  }
  return reinterpret_cast<F*>(fn);
}
template <class F>
[[gnu::always_inline]] inline F* real(OwnRow row) noexcept {
  void* fn = g_row_state[index_of(row)].real.load(std::memory_order_relaxed);
  if (fn == nullptr) [[unlikely]]
    return found_or_missing<F>(find_real(row));
  return reinterpret_cast<F*>(fn);
}
template <class F>
F* real(OtherRow row) noexcept {
  return found_or_missing<F>(find_real(row));
}

// errno of the libc that made the call.
template <auto row>
int reason() noexcept {
  if constexpr (kIsOwn<row>) {
    return errno;
  } else {
    return errno_of_other();
  }
}

}  // namespace dft::intercept
