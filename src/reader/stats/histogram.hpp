// A histogram of durations with 32 steps per octave, the same scale as that of a report.
// No locks: each worker thread fills its own, and adding two gives the histogram of both.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace dft::reader {

// A percentile is exact to 1/64 of its value.
class Histogram {
 public:
  void add(std::uint64_t value, std::uint64_t times = 1) {
    const unsigned slot = bucket(value) - first_;
    // A bucket below the first wraps around and is out of range, too.
    (slot < counts_.size() ? counts_[slot] : make(bucket(value))) += times;
  }
  void add(const Histogram& other);
  // The value below which this share (0 to 1) of all values lies.
  [[nodiscard]] std::uint64_t percentile(double share) const;
  [[nodiscard]] std::uint64_t count() const;

 private:
  // Branch-free: whether a duration is below 64 ns is unpredictable.
  static unsigned bucket(std::uint64_t value) {
    const auto octave = static_cast<unsigned>(std::bit_width(value | 32)) - 6;  // 0 below 64
    return octave * 32 + static_cast<unsigned>(value >> octave);
  }
  static std::uint64_t middle(unsigned bucket);
  std::uint64_t& make(unsigned bucket);

  unsigned first_ = 0;  // bucket of counts_[0]
  std::vector<std::uint64_t> counts_;
};

}  // namespace dft::reader
