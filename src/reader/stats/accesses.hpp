// Follows where in a file each process reads and writes: the position of calls that do not record
// it, and the access pattern of each transfer. Called in the order of the trace, by one thread.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/stats/call_bytes.hpp"

namespace dft::reader {

inline constexpr std::int64_t kUnknown = -1;

// One call on a file, as far as its place matters.
struct FileCall {
  std::int64_t row;
  std::int64_t ts;
  std::int64_t tid;
  std::int64_t offset;  // of a transfer that tells it, or where a seek or open leads, or kUnknown
  std::int64_t bytes;   // of a transfer, or kUnknown
  std::int32_t path;    // in the batch
  Role role;
  bool relative;  // of a seek: from where the file is
  bool second;    // the other file of a copy: its place has no column
};

// How a transfer lies to the one before of the same file, since it was opened: of the same thread,
// or, where threads share what is open, of any of them.
enum class Pattern : std::uint8_t { kFirst, kSequential, kStrided, kRandom };
inline constexpr const char* kPatternNames[] = {"first", "sequential", "strided", "random"};

// An open file has one position, which all threads, and after a fork all processes, move that use
// it. Calls name the file and not the descriptor, so a call belongs to what its thread has opened,
// or else to the only thing that is open. Where that leaves a doubt, and where the process did not
// open the file itself, the place of a transfer is not known.
class Accesses {
 public:
  struct Placement {
    std::int64_t position = kUnknown;
    Pattern pattern = Pattern::kFirst;  // if the position is known
  };
  // A number for a path, the same for all batches.
  std::uint32_t path(const std::string& name);
  // Notes what is not a transfer; of a transfer that moved something, says how it lies.
  Placement follow(std::int32_t process, std::uint32_t path, const FileCall& call);

 private:
  // The transfers so far.
  struct AccessRun {
    std::int64_t start = 0;  // of the last one
    std::int64_t end = 0;
    std::int64_t stride = 0;
    bool moved = false;  // there was one
  };
  struct Opened {
    std::int64_t owner;  // the thread that opened it
    std::int64_t position = 0;
    std::int64_t seeker = 0;  // the thread that moved it last
    std::int32_t descriptors = 1;
    bool known = true;    // the position
    bool shared = false;  // other threads used it
    bool sought = false;  // it was not only read or written on
    AccessRun run{};
  };
  struct OpenKey {
    std::int64_t tid;
    std::int32_t process;
    std::uint32_t path;
    bool operator==(const OpenKey&) const = default;
  };
  struct OpenKeyHash {
    std::size_t operator()(const OpenKey& key) const {
      std::uint64_t hash = static_cast<std::uint64_t>(key.tid) * 0x9e3779b97f4a7c15U;
      hash ^=
          (static_cast<std::uint64_t>(key.path) << 32) | static_cast<std::uint32_t>(key.process);
      hash *= 0xbf58476d1ce4e5b9U;
      return hash ^ (hash >> 29);
    }
  };
  static Opened* used_by(std::vector<Opened>& open, std::int64_t tid);
  static void seek(Opened& opened, const FileCall& call);
  static void close(std::vector<Opened>& open, std::int64_t tid);
  static Placement place(AccessRun& run, std::int64_t start, std::int64_t bytes);

  std::unordered_map<OpenKey, std::vector<Opened>, OpenKeyHash>
      open_;  // by process and path, tid 0
  std::unordered_map<OpenKey, AccessRun, OpenKeyHash> runs_;
  std::unordered_map<std::string, std::uint32_t> paths_;
};

}  // namespace dft::reader
