// The wrappers of MPI's functions: all of them take words, so that one function serves all rows.
#include "intercept/mpi_calls.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "intercept/call_site.hpp"
#include "intercept/mpi_names.hpp"
#include "intercept/mpi_rows.hpp"
#include "intercept/mpi_traced_call.hpp"

namespace dft::intercept::mpi {
namespace {

template <std::size_t... I>
int invoke_with(void* real, const Word* words, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(decltype((void)I, Word{})...)>(real)(words[I]...);
}
template <std::size_t kWords>
int invoke(void* real, const Word* words) {
  return invoke_with(real, words, std::make_index_sequence<kWords>{});
}

// The function, with large counts, and both in the profiling layer.
constexpr std::size_t kNamesPerRow = 4;
constexpr std::size_t kLargeCounts = 1;
constexpr std::size_t kProfiling = 2;
// Constant: a constructor of another library may begin interception before our own run.
constinit LibraryCall g_calls[kRowCount * kNamesPerRow] = {};
constexpr std::size_t kLongestSymbol = 48;
char g_symbols[kRowCount][kNamesPerRow][kLongestSymbol];

template <std::size_t kRow, std::size_t kName, std::size_t... I>
int enter(decltype((void)I, Word{})... words) {
  Word list[sizeof...(I) + 1] = {words...};
  const Given given{kRows[kRow], library(), list, (kName & kLargeCounts) != 0};
  return traced(given, g_calls[kRow * kNamesPerRow + kName].real.load(std::memory_order_relaxed),
                &invoke<sizeof...(I)>, caller_of_wrapper());
}

using Function = void (*)();
template <std::size_t kRow, std::size_t kName, std::size_t... I>
Function wrapper_of(std::index_sequence<I...>) {
  return reinterpret_cast<Function>(&enter<kRow, kName, I...>);
}

template <std::size_t kRow, std::size_t kName>
void make_call() {
  static_assert(std::char_traits<char>::length(kRows[kRow].name) + 4 < kLongestSymbol);
  static_assert(kRows[kRow].words <= kMostWords);
  char* at = g_symbols[kRow][kName];
  const auto append = [&at](const char* text) {
    while (*text != '\0') *at++ = *text++;
  };
  if ((kName & kProfiling) != 0) append("P");
  append(kRows[kRow].name);
  if ((kName & kLargeCounts) != 0)
    append("_c");  // a symbol that no library has, where there are no counts
  LibraryCall& call = g_calls[kRow * kNamesPerRow + kName];
  call.symbol = g_symbols[kRow][kName];
  call.wrapper = wrapper_of<kRow, kName>(std::make_index_sequence<kRows[kRow].words>{});
}

template <std::size_t... I>
void make_calls(std::index_sequence<I...>) {
  (make_call<I / kNamesPerRow, I % kNamesPerRow>(), ...);
}

// Only where the library is loaded, so that no other program pays for the table.
void make_table() noexcept { make_calls(std::make_index_sequence<kRowCount * kNamesPerRow>{}); }

}  // namespace

constinit LibraryLayer g_layer{"PMPI_Init", g_calls, kRowCount * kNamesPerRow, {}, make_table};

void watch_mpi(bool calls, bool files) noexcept {
  g_watched_layers[static_cast<std::size_t>(Layer::MPI)].store(calls);
  g_watched_layers[static_cast<std::size_t>(Layer::MPIIO)].store(files);
}

}  // namespace dft::intercept::mpi
