// The common start of all lines with the same name, category and thread: built once, then copied.
// Used by the encoder, on the draining thread or in a recoverer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "record/event.hpp"
#include "sink/mmap_buffer.hpp"
#include "sink/name_table.hpp"

namespace dft::sink {

// How a Call's words are written: ,"key":1 or ,"key":"0123456789abcdef". Files and sizes mostly
// repeat, so the last text of each word is cached.
struct CallShape {
  static constexpr std::size_t kPiece = 64;
  static_assert(kPiece >= record::kLongestShapeKey + 4 + 24);
  struct ShapeWord {
    char text[kPiece];
    std::uint64_t value;
    std::uint8_t size;  // of the text; 0: nothing cached
    std::uint8_t key_size;
    bool hash;
  };
  ShapeWord word[record::kMostShapeWords];
  std::uint32_t words;
  std::string_view name;
  std::string_view category;
};

// Parses an escaped shape; text that is not a shape has no words.
CallShape parse_shape(std::string_view text) noexcept;

// A name or a category.
struct Label {
  std::string_view text;
  bool raw;  // not escaped yet
};
// Writes ,"name":"N","cat":"C","pid":P,"tid":T,"ts": where `where` is the part for pid and tid.
// Needs kPrefixFixed bytes beyond the labels and `where`; copied in steps.
inline constexpr std::size_t kPrefixStep = 64;
inline constexpr std::size_t kPrefixFixed = kPrefixStep + 32;
char* put_prefix(char* p, Label name, Label category, std::string_view where) noexcept;

struct LinePrefix {
  static constexpr std::size_t kRoom = 256;
  std::uint32_t version;  // of the names; 0: not built yet
  std::uint32_t name;
  std::uint32_t category;
  std::uint32_t thread;
  std::uint32_t size;
  bool is_call;
  CallShape shape;  // for calls
  char text[kRoom];
};

class LinePrefixes {
 public:
  // nullptr if the prefix does not fit, or there is no memory.
  LinePrefix* find(const record::Head& head, std::uint32_t thread, std::string_view where,
                   const NameTable& names) noexcept {
    if (memory_.size() == 0 && !prepare()) [[unlikely]]
      return nullptr;
    const bool is_call = head.kind == record::Kind::kCall;
    LinePrefix& prefix =
        reinterpret_cast<LinePrefix*>(memory_.data())[(head.name * 7 + head.category) % kPrefixes];
    if (prefix.name == head.name && prefix.category == head.category && prefix.thread == thread &&
        prefix.version == names.version() && prefix.is_call == is_call) [[likely]] {
      return &prefix;
    }
    return make(prefix, head, thread, where, names) ? &prefix : nullptr;
  }
  void free() noexcept { memory_.free(); }

 private:
  static constexpr std::size_t kPrefixes = 64;
  bool prepare() noexcept;
  static bool make(LinePrefix& prefix, const record::Head& head, std::uint32_t thread,
                   std::string_view where, const NameTable& names) noexcept;

  MmapBuffer memory_;  // of LinePrefix; zero pages until first use
};

}  // namespace dft::sink
