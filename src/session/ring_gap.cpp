#include "session/ring_gap.hpp"

namespace dft::session {

constinit RingGap g_ring_gap{};
constinit std::atomic<void (*)(Closing) noexcept> g_before_close{nullptr};

}  // namespace dft::session
