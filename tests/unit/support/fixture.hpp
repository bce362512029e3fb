// Shared fixtures of the unit tests: a temporary directory, a child process, a hand-made spool.
// Each test has its own, so that tests and whole runs can go in parallel.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/span.hpp"
#include "buffer/spool.hpp"
#include "recovery/owner.hpp"

namespace fixture {

namespace buffer = dft::buffer;
namespace record = dft::record;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    REQUIRE(::mkdtemp(path_) != nullptr);
    text_ = path_;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(text_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const char* path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return text_ + "/" + std::string(name);
  }
  // Base names, sorted.
  [[nodiscard]] std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(text_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  char path_[32] = "/tmp/dft_unit_XXXXXX";
  std::string text_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
inline bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      lines.push_back(text.substr(at) + "<no end of line>");
      break;
    }
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The ids of the program's events, in file order.
inline std::vector<std::uint64_t> event_ids(const std::string& text) {
  std::vector<std::uint64_t> ids;
  for (const std::string& line : lines_of(text)) {
    if (line.find("\"cat\":\"APP\"") == line.npos) continue;
    REQUIRE(line.starts_with("{\"id\":"));
    ids.push_back(std::strtoull(line.c_str() + 6, nullptr, 10));
  }
  return ids;
}

inline std::string line_with(const std::string& text, std::string_view part) {
  for (const std::string& line : lines_of(text)) {
    if (line.find(part) != line.npos) return line;
  }
  return {};
}

inline std::uint64_t number_after(const std::string& line, std::string_view key) {
  const std::size_t at = line.find(key);
  REQUIRE_MESSAGE(at != line.npos, line);
  return std::strtoull(line.c_str() + at + key.size(), nullptr, 10);
}

inline int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Exit status, or 1000 + the signal. The body uses no doctest assertions: it returns its result.
template <class Body>
pid_t start_child(Body body) {
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    int result = 250;  // a REQUIRE failed: do not continue with the parent's other tests
    try {
      result = body();
    } catch (...) {
    }
    ::_exit(result);
  }
  return pid;
}
template <class Body>
int in_child(Body body) {
  return wait_for(start_child(body));
}

// One record as a thread writes it.
inline std::string make_record(record::Head head, const std::string& args = {}) {
  head.size = static_cast<std::uint32_t>(sizeof head + args.size());
  std::string bytes(sizeof head, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes + args;
}
inline std::string make_call(record::Call call, const std::vector<std::uint64_t>& words = {}) {
  call.size = static_cast<std::uint32_t>(sizeof call + words.size() * sizeof words[0]);
  call.kind = record::Kind::kCall;
  std::string bytes(call.size, '\0');
  std::memcpy(bytes.data(), &call, sizeof call);
  if (!words.empty())
    std::memcpy(bytes.data() + sizeof call, words.data(), words.size() * sizeof words[0]);
  return bytes;
}
inline std::string make_arg(std::uint32_t key, record::ArgType type, std::uint64_t word) {
  const record::Arg arg{key, type, {}, word};
  return {reinterpret_cast<const char*>(&arg), sizeof arg};
}
inline std::string make_bytes(std::uint32_t key, record::ArgType type, std::string_view bytes) {
  std::string all = make_arg(key, type, bytes.size()) + std::string(bytes);
  all.resize(sizeof(record::Arg) + record::padded(bytes.size()));
  return all;
}
// A span with given times, so that its line is predictable. Names 1 and 2 are "work" and "APP".
inline std::string make_span(std::uint64_t id) {
  return make_record({0, record::Kind::kSpan, record::kTimesGiven, 1, 1, 2, id, 0, 1000 + id, 5});
}

inline bool put(buffer::ChunkHead& chunk, const std::string& bytes) {
  const std::uint64_t at = chunk.committed.load();
  if (buffer::room(chunk) - at < bytes.size()) return false;
  std::memcpy(buffer::payload(chunk) + at, bytes.data(), bytes.size());
  chunk.committed.store(at + bytes.size(), std::memory_order_release);
  return true;
}
inline void set_state(buffer::ChunkHead& chunk, buffer::ChunkState state) {
  chunk.state.store(state, std::memory_order_release);
}
inline buffer::ChunkState state_of(const buffer::ChunkHead& chunk) { return chunk.state.load(); }
inline std::string make_name(std::uint32_t id, std::string_view text) {
  const buffer::NameRecord head{id, static_cast<std::uint32_t>(text.size())};
  std::string all(reinterpret_cast<const char*>(&head), sizeof head);
  all += text;
  all.resize(record::padded(all.size()));
  return all;
}

// Like a thread that found no free chunk.
inline bool grow(buffer::Spool& spool, std::size_t need, bool small) {
  return spool.grow(need, small, spool.head().segments.load());
}

inline constexpr std::string_view kPreamble =
    "[\n{\"id\":1,\"name\":\"start\",\"cat\":\"dftracer\",\"ts\":7}\n";

// Fills the head of a new spool as a session does: records into <trace>, owned by this process.
inline void prepare(buffer::Spool& spool, const char* trace, std::uint32_t flags = 0) {
  buffer::SpoolHead& head = spool.head();
  dft::recovery::describe_self(head.owner);
  std::strcpy(head.trace_name, trace);
  head.flags = flags;
  head.run = 0x1122334455667788;
  head.host_hash = 0xabcdef;
  head.time_divisor_log10 = 3;
  head.compression_level = 1;
  kPreamble.copy(spool.preamble(), kPreamble.size());
  head.preamble_size = kPreamble.size();
  head.preamble_lines = 1;
  head.next_id.store(1000000);
  spool.clock_map().start(0);
  head.ready.store(1, std::memory_order_release);
}

// With the names "work", "APP" and "key" as 1, 2 and 3.
inline buffer::Spool* make_spool(const std::string& path, const char* trace,
                                 std::uint32_t flags = 0) {
  int error = 0;
  buffer::Spool* spool = buffer::Spool::create(path.c_str(), 512, &error);
  if (spool == nullptr) return nullptr;
  prepare(*spool, trace, flags);
  buffer::ChunkHead* names = spool->take(100, true, 0);
  put(*names, make_name(1, "work") + make_name(2, "APP") + make_name(3, "key"));
  set_state(*names, buffer::ChunkState::kNames);
  return spool;
}

// The file as it is now, for Spool::adopt.
class Image {
 public:
  explicit Image(const std::string& bytes) : size_(bytes.size()) {
    // In its own pages, as in a recoverer; a read past the end hits no other test's memory.
    data_ = static_cast<std::byte*>(dft::sys::map_private(size_));
    REQUIRE(data_ != nullptr);
    std::memcpy(data_, bytes.data(), size_);
  }
  ~Image() { dft::sys::unmap(data_, size_); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] buffer::SpoolHead& head() const {
    return *reinterpret_cast<buffer::SpoolHead*>(data_);
  }
  [[nodiscard]] buffer::ChunkHead& chunk(std::uint64_t offset) const {
    return *reinterpret_cast<buffer::ChunkHead*>(data_ + offset);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_;
};

}  // namespace fixture
