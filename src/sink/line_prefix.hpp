// What the lines of one name, category and thread have in common, made once and copied from then
// on. Used by the encoder, on whatever thread drains.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "record/event.hpp"
#include "sink/mmap_buffer.hpp"
#include "sink/name_table.hpp"

namespace dft::sink {

// The words of a Call as they stand in the line: ,"key":1 or ,"key":"0123456789abcdef".
// Files and sizes are mostly the same again, so the last text of each is kept.
struct Shape {
  static constexpr std::size_t kPiece = 64;
  static_assert(kPiece >= record::kLongestShapeKey + 4 + 24);
  struct Word {
    char text[kPiece];
    std::uint64_t value;
    std::uint8_t size;  // of the text, 0: none yet
    std::uint8_t key_size;
    bool hash;
  };
  Word word[record::kMostShapeWords];
  std::uint32_t words;
  std::string_view name;
  std::string_view category;
};

// Reads an escaped shape; what is not one has no words.
Shape parse_shape(std::string_view text) noexcept;

// A name or a category, escaped or not yet.
struct Label {
  std::string_view text;
  bool raw;
};
// ,"name":"N","cat":"C","pid":P,"tid":T,"ts": with room for kStemFixed bytes beside the labels and
// `where`, which is what stands for process and thread. Copied in steps.
inline constexpr std::size_t kStemStep = 64;
inline constexpr std::size_t kStemFixed = kStemStep + 32;
char* put_stem(char* p, Label name, Label category, std::string_view where) noexcept;

struct Stem {
  static constexpr std::size_t kRoom = 256;
  std::uint32_t version;  // of the names; 0: not made yet
  std::uint32_t name;
  std::uint32_t category;
  std::uint32_t thread;
  std::uint32_t size;
  bool is_call;
  Shape shape;  // where it is a call's
  char text[kRoom];
};

class Stems {
 public:
  // nullptr when it does not fit, or there is no memory.
  Stem* find(const record::Head& head, std::uint32_t thread, std::string_view where,
             const NameTable& names) noexcept {
    if (memory_.size() == 0 && !prepare()) [[unlikely]]
      return nullptr;
    const bool is_call = head.kind == record::Kind::kCall;
    Stem& stem = reinterpret_cast<Stem*>(memory_.data())[(head.name * 7 + head.category) % kStems];
    if (stem.name == head.name && stem.category == head.category && stem.thread == thread &&
        stem.version == names.version() && stem.is_call == is_call) [[likely]] {
      return &stem;
    }
    return make(stem, head, thread, where, names) ? &stem : nullptr;
  }
  void free() noexcept { memory_.free(); }

 private:
  static constexpr std::size_t kStems = 64;
  bool prepare() noexcept;
  static bool make(Stem& stem, const record::Head& head, std::uint32_t thread,
                   std::string_view where, const NameTable& names) noexcept;

  MmapBuffer memory_;  // of Stem: zeros, and no page of it before it is needed
};

}  // namespace dft::sink
