// Follows where in a file each thread reads and writes: the position of calls that do not tell it,
// and how a transfer lies to the one before. Fed in the order of the trace, by one thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "reader/json.hpp"

namespace dft::reader {

enum class Touch : std::uint8_t { kNone, kTransfer, kOpen, kSeek };
// By category (POSIX, STDIO) and function; transfers are known by their bytes.
Touch touch_of(std::string_view category, std::string_view name);

// One call on a file, as far as its place matters.
struct FileCall {
  std::int64_t row;
  std::int64_t tid;
  std::int64_t offset;  // of a transfer that tells it, or where a seek leads; kUnknown otherwise
  std::int64_t bytes;
  std::int32_t path;  // in the batch
  Touch touch;
  bool relative;  // of a seek: from where the thread is
};

inline constexpr std::int64_t kUnknown = -1;

// How a transfer lies to the one before of the same process, thread and file, since it was opened.
enum class Pattern : std::uint8_t { kFirst, kSequential, kStrided, kRandom };
inline constexpr const char* kPatternNames[] = {"first", "sequential", "strided", "random"};

class Accesses {
 public:
  struct Found {
    std::int64_t position;
    Pattern pattern;
  };
  // A number for a path, the same for all batches.
  std::uint32_t path(const std::string& name);
  // Opens and seeks are noted; of a transfer that moved something it is told how it lies.
  Found follow(std::int32_t process, std::uint32_t path, const FileCall& call);

 private:
  struct Key {
    std::int64_t tid;
    std::int32_t process;
    std::uint32_t path;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = static_cast<std::uint64_t>(key.tid) * 0x9e3779b97f4a7c15U;
      hash ^=
          (static_cast<std::uint64_t>(key.path) << 32) | static_cast<std::uint32_t>(key.process);
      hash *= 0xbf58476d1ce4e5b9U;
      return hash ^ (hash >> 29);
    }
  };
  struct State {
    std::int64_t position = 0;  // of the descriptor
    std::int64_t start = 0;     // of the last transfer
    std::int64_t end = 0;
    std::int64_t stride = 0;
    bool moved = false;  // there was a transfer since it was opened
  };
  std::unordered_map<Key, State, KeyHash> states_;
  std::unordered_map<std::string, std::uint32_t> paths_;
};

}  // namespace dft::reader
