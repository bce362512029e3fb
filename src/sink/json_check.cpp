#include "sink/json_check.hpp"

#include <cstdint>

#include "format/escape.hpp"

namespace dft::sink {
namespace {

constexpr unsigned kDepth = 64;

class Check {
 public:
  explicit Check(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  // The open containers are bits of a word, 1 for an object, so that depth costs no stack.
  bool whole() {
    unsigned depth = 0;
    std::uint64_t objects = 0;
    for (;;) {
      // A value starts here.
      if (accept('{')) {
        if (depth == kDepth) return false;
        objects = objects << 1 | 1;
        ++depth;
        if (!accept('}')) {
          if (!key()) return false;
          continue;
        }
        objects >>= 1;
        --depth;
      } else if (accept('[')) {
        if (depth == kDepth) return false;
        objects <<= 1;
        ++depth;
        if (!accept(']')) continue;
        objects >>= 1;
        --depth;
      } else if (!scalar()) {
        return false;
      }
      // A value has ended: close the containers that end with it.
      for (;;) {
        if (depth == 0) return at_ == end_;
        const bool object = (objects & 1) != 0;
        if (accept(',')) {
          if (object && !key()) return false;
          break;
        }
        if (!accept(object ? '}' : ']')) return false;
        objects >>= 1;
        --depth;
      }
    }
  }

 private:
  bool accept(char wanted) {
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word))
      return false;
    at_ += word.size();
    return true;
  }
  bool key() { return string() && accept(':'); }

  bool string() {
    if (!accept('"')) return false;
    while (at_ != end_) {
      const char c = *at_++;
      if (c == '"') return true;
      const auto byte = static_cast<unsigned char>(c);
      if (byte < ' ' || byte == 0x7f) return false;
      if (byte > 0x7f) {
        const auto* p = reinterpret_cast<const unsigned char*>(at_ - 1);
        const std::size_t length =
            format::utf8_sequence(p, static_cast<std::size_t>(end_ - at_) + 1);
        if (length == 0) return false;
        at_ += length - 1;
      }
      if (c == '\\' && !escaped()) return false;
    }
    return false;
  }

  bool escaped() {
    if (at_ == end_) return false;
    const char c = *at_++;
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == end_ ||
          std::string_view("0123456789abcdefABCDEF").find(*at_) == std::string_view::npos)
        return false;
    }
    return true;
  }

  bool digits() {
    const char* first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != first;
  }

  bool scalar() {
    if (at_ == end_) return false;
    if (*at_ == '"') return string();
    if (accept("true") || accept("false") || accept("null")) return true;
    accept('-');
    if (!accept('0') && !digits()) return false;
    if (accept('.') && !digits()) return false;
    if (accept('e') || accept('E')) {
      if (!accept('+')) accept('-');
      return digits();
    }
    return true;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

bool is_json(std::string_view text) noexcept { return Check(text).whole(); }

}  // namespace dft::sink
