// See histogram.hpp.
#include "reader/stats/histogram.hpp"

namespace dft::reader {

std::uint64_t Histogram::middle(unsigned bucket) {
  if (bucket < 32) return bucket;
  const unsigned octave = (bucket - 32) / 32;
  const std::uint64_t low = (std::uint64_t{32} + (bucket - 32) % 32) << octave;
  return low + ((std::uint64_t{1} << octave) / 2);
}

std::uint64_t& Histogram::make(unsigned bucket) {
  if (counts_.empty()) {
    first_ = bucket;
    counts_.resize(1);
  } else if (bucket < first_) {
    counts_.insert(counts_.begin(), first_ - bucket, 0);
    first_ = bucket;
  } else if (bucket >= first_ + counts_.size()) {
    counts_.resize(bucket - first_ + 1);
  }
  return counts_[bucket - first_];
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] != 0) make(other.first_ + static_cast<unsigned>(i)) += other.counts_[i];
  }
}

std::uint64_t Histogram::count() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t n : counts_) sum += n;
  return sum;
}

std::uint64_t Histogram::percentile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count()));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    sum += counts_[i];
    if (sum > wanted || (sum == wanted && i + 1 == counts_.size())) {
      return middle(first_ + static_cast<unsigned>(i));
    }
  }
  return 0;
}

}  // namespace dft::reader
