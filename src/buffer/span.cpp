#include "buffer/span.hpp"

#include <cstdlib>

namespace dft::buffer {

bool Args::enlarge(std::size_t n) noexcept {
  const std::size_t wanted = (used_ + n) * 2;
  if (wanted > record::kMaxRecord) return false;
  SlowPath slow;
  auto* bigger = static_cast<std::byte*>(std::realloc(heap_, wanted));
  if (bigger == nullptr) return false;
  if (heap_ == nullptr) std::memcpy(bigger, inline_, used_);
  heap_ = bigger;
  capacity_ = static_cast<std::uint32_t>(wanted);
  return true;
}

void Args::release() noexcept {
  std::free(heap_);
  heap_ = nullptr;
  capacity_ = sizeof inline_;
}

}  // namespace dft::buffer
