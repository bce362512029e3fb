// The arguments of one call, in the form of the record. Filled by call_record.hpp after the call,
// on the thread that made it.
#pragma once
#include <sys/types.h>

#include <cstring>

#include "intercept/call_row.hpp"
#include "record/event.hpp"

namespace dft::intercept {

enum class Key : std::uint8_t {
#define DFT_KEY(name) name,
#include "intercept/keys.def"
  kCount
};

// Ids of the keys and categories, interned when interception begins.
struct InternedIds {
  std::uint32_t key[static_cast<std::size_t>(Key::kCount)];
  std::uint32_t category[static_cast<std::size_t>(Category::kCount)];
};
[[gnu::visibility("hidden")]] extern InternedIds g_ids;
DFT_HOT extern std::atomic<bool> g_watched[static_cast<std::size_t>(Category::kCount)];
DFT_HOT extern std::atomic<bool>
    g_details;  // arguments are recorded; only then do rows have shapes

// Typed arguments, one after the other, as a general record holds them.
class CallArgs {
 public:
  void put(Key key, record::ArgType type, std::uint64_t word) noexcept {
    const record::Arg arg{g_ids.key[static_cast<std::size_t>(key)], type, {}, word};
    std::memcpy(bytes_ + used_, &arg, sizeof arg);
    used_ += sizeof arg;
  }
  void put_text(Key key, const char* text) noexcept {
    const std::size_t n = ::strnlen(text, kLongestText);
    put(key, record::ArgType::kString, n);
    if (n == 0) return;
    std::memset(bytes_ + used_ + record::padded(n) - 8, 0, 8);
    std::memcpy(bytes_ + used_, text, n);
    used_ += static_cast<std::uint32_t>(record::padded(n));
  }
  [[nodiscard]] const std::byte* bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return used_; }

 private:
  static constexpr std::size_t kLongestText = 160;
  std::uint32_t used_ = 0;
  alignas(8) std::byte bytes_[13 * sizeof(record::Arg) + kLongestText];
};

// One argument of a row: a number, a text, or a second file, by its path or its descriptor.
struct NumberArg {
  Key key;
  std::int64_t value;
};
// These have constructors, because clang before 16 initializes no aggregate in parentheses.
struct TextArg {
  constexpr TextArg(Key k, const char* t) : key(k), text(t) {}
  Key key;
  const char* text;
};
struct OptionalArg {
  Key key;
  bool given;
  std::int64_t value;
};
struct SecondPath {
  constexpr SecondPath(Key k, int d, const char* p) : key(k), directory(d), path(p) {}
  Key key;
  int directory;
  const char* path;
};
struct SecondFd {
  constexpr SecondFd(Key k, int f) : key(k), fd(f) {}
  Key key;
  int fd;
};
// Where a copy began: the kernel has advanced the offset by what it copied.
inline OptionalArg began_at(Key key, const off_t* offset, ssize_t copied) {
  if (offset == nullptr || copied < 0) return {key, false, 0};
  return {key, true, *offset - copied};
}
template <class T>
constexpr NumberArg field(Key key, T value) {
  return {key, static_cast<std::int64_t>(value)};
}
constexpr TextArg field(Key key, const char* text) { return {key, text}; }

}  // namespace dft::intercept
