#include "intercept/mpi_names.hpp"

#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "buffer/span.hpp"

namespace dft::intercept::mpi {

DFT_HOT constinit std::atomic<bool> g_watched_layers[2] = {};

namespace {

constinit std::atomic<std::uint32_t> g_row_names[kRowCount] = {};
constinit std::atomic<std::uint32_t> g_categories[2] = {};
constinit std::atomic<std::uint32_t> g_request_categories[2] = {};

}  // namespace

std::uint32_t interned(std::atomic<std::uint32_t>& id, const char* text) noexcept {
  std::uint32_t known = id.load(std::memory_order_acquire);
  if (known == 0) [[unlikely]] {
    known = buffer::g_names.id(text);
    id.store(known, std::memory_order_release);
  }
  return known;
}

std::uint32_t name_of(const Row& row) noexcept {
  return interned(g_row_names[&row - kRows], row.name);
}
std::uint32_t category_of(Layer layer) noexcept {
  return interned(g_categories[static_cast<std::size_t>(layer)],
                  layer == Layer::MPI ? "MPI" : "MPIIO");
}
std::uint32_t request_category(bool is_file) noexcept {
  return interned(g_request_categories[is_file ? 1 : 0], is_file ? "MPIIO_REQUEST" : "MPI_REQUEST");
}

}  // namespace dft::intercept::mpi
