#include "intercept/syscall_filter.hpp"

#include "intercept/syscall_numbers.hpp"

namespace dft::intercept {
namespace {

constexpr long kWanted[] = {
#define DFT_SYSCALL(name) SYS_##name,
#include "format/calls.def"
};

constexpr auto make_wanted() {
  struct {
    unsigned char flag[kCallNumbers];
  } wanted{};
  for (const long number : kWanted)
    if (number >= 0) wanted.flag[number] = 1;
  return wanted;
}

}  // namespace
}  // namespace dft::intercept

extern "C" [[gnu::visibility("hidden")]] constinit const auto dftracer_wanted_calls =
    dft::intercept::make_wanted();
