// Spans that a tracer wrote as two records, a beginning (B) and an end (E), as Chrome's format
// allows: which end belongs to which beginning. Made by the first worker that meets one in a file;
// the others wait for it. Read-only afterwards.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dft::reader {

struct InFile;

inline constexpr char kSpanBegin = 'B';
inline constexpr char kSpanEnd = 'E';
inline bool is_half(char phase) { return phase == kSpanBegin || phase == kSpanEnd; }

class Pairs {
 public:
  enum class Fate : std::uint8_t { kAlone, kSpan, kTaken };
  struct Match {
    Fate fate = Fate::kAlone;
    std::int64_t dur = 0;                    // of a span, nanoseconds
    const std::string* arguments = nullptr;  // of its end, if it has some
  };

  // Reads the file for them: about 40 bytes each while that goes on, 8 afterwards.
  explicit Pairs(const InFile& file);
  // `index` counts the beginnings and ends of the block.
  [[nodiscard]] Match find(std::uint64_t block, std::size_t index) const;

 private:
  struct Half;
  void match(std::vector<Half>& halves);

  static constexpr std::int64_t kAlone = -1;
  static constexpr std::int64_t kTaken = -2;
  std::vector<std::vector<std::int64_t>> fates_;  // by block: a duration, or one of these
  std::map<std::pair<std::uint64_t, std::size_t>, std::string> arguments_;
};

// Of one file.
class PairsOnce {
 public:
  const Pairs& of(const InFile& file) {
    std::call_once(once_, [&] { pairs_ = std::make_unique<const Pairs>(file); });
    return *pairs_;
  }

 private:
  std::once_flag once_;
  std::unique_ptr<const Pairs> pairs_;
};

}  // namespace dft::reader
