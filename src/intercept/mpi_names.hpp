// Names and categories of the events of MPI, interned when they first occur, and whether a layer is
// recorded. On the program's threads.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/hot.hpp"
#include "intercept/mpi_rows.hpp"

namespace dft::intercept::mpi {

DFT_HOT extern std::atomic<bool> g_watched_layers[2];
inline bool is_watched(Layer layer) noexcept {
  return g_watched_layers[static_cast<std::size_t>(layer)].load(std::memory_order_relaxed);
}

// The id of a text, which the caller keeps, 0 at first.
std::uint32_t interned(std::atomic<std::uint32_t>& id, const char* text) noexcept;
std::uint32_t name_of(const Row& row) noexcept;
std::uint32_t category_of(Layer layer) noexcept;
// Of what a call has started, from its start to its completion.
std::uint32_t request_category(bool is_file) noexcept;

}  // namespace dft::intercept::mpi
