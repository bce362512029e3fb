// A strict JSON parser, independent of the code under test: is it JSON, and which bytes went in?
// Used by unit tests and fuzz targets.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace json {

// Length of the UTF-8 sequence at `at` by the table of RFC 3629; 0 if it is invalid.
inline std::size_t utf8_length(std::string_view s, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0;
  };
  const auto tail = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
  const unsigned a = byte(0);
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return tail(1) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    const unsigned low = a == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = a == 0xed ? 0x9f : 0xbf;
    return byte(1) >= low && byte(1) <= high && tail(2) ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const unsigned low = a == 0xf0 ? 0x90 : 0x80;
    const unsigned high = a == 0xf4 ? 0x8f : 0xbf;
    return byte(1) >= low && byte(1) <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// The bytes that were escaped into the body of a JSON string; nullopt if it is invalid.
// A character U+EF80 to U+EFFF stands for one byte, and must be escaped.
inline std::optional<std::string> decode(std::string_view inside) {
  std::string out;
  for (std::size_t at = 0; at < inside.size();) {
    const auto c = static_cast<unsigned char>(inside[at]);
    if (c < 0x20 || c == '"') return std::nullopt;
    if (c != '\\') {
      const std::size_t n = utf8_length(inside, at);
      if (n == 0) return std::nullopt;
      const std::string_view whole = inside.substr(at, n);
      if (whole >= "\xee\xbe\x80" && whole <= "\xee\xbf\xbf") return std::nullopt;
      out += whole;
      at += n;
      continue;
    }
    if (at + 1 >= inside.size()) return std::nullopt;
    const char what = inside[at + 1];
    const char* letters = "\"\\/bfnrt";
    const char* plain = "\"\\/\b\f\n\r\t";
    if (what != 'u') {
      const char* hit = std::strchr(letters, what);
      if (what == '\0' || hit == nullptr) return std::nullopt;
      out += plain[hit - letters];
      at += 2;
      continue;
    }
    if (at + 6 > inside.size()) return std::nullopt;
    unsigned code = 0;
    for (const char h : inside.substr(at + 2, 4)) {
      const char* digits = "0123456789abcdef";
      const char* hit = std::strchr(digits, h);
      if (h == '\0' || hit == nullptr) return std::nullopt;
      code = code * 16 + static_cast<unsigned>(hit - digits);
    }
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code >= 0xef80 && code <= 0xefff) {
      out += static_cast<char>(code & 0xff);
    } else {
      return std::nullopt;  // our escaper never writes it
    }
    at += 6;
  }
  return out;
}

// Every escape is valid JSON, and every control character is escaped.
inline bool escapes_hold(std::string_view inside) {
  for (std::size_t at = 0; at < inside.size(); ++at) {
    if (static_cast<unsigned char>(inside[at]) < 0x20) return false;
    if (inside[at] != '\\') continue;
    if (++at >= inside.size()) return false;
    if (inside[at] == 'u') {
      const std::string_view hex = inside.substr(at + 1, 4);
      if (hex.size() < 4 || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos) {
        return false;
      }
      at += 4;
    } else if (std::string_view("\"\\/bfnrt").find(inside[at]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

// Accepted dialects. `kOurs` is what our traces may contain: no whitespace, bounded nesting, only
// strings that `decode` accepts. `kAny` is RFC 8259 with any bytes from 0x20 on in strings.
enum class Dialect { kOurs, kAny };

// In both: no comments, no trailing commas, no NaN, no leading zeros.
class Checker {
 public:
  explicit Checker(std::string_view text, Dialect dialect = Dialect::kOurs)
      : text_(text), any_(dialect == Dialect::kAny) {}
  bool whole() {
    const bool good = value(0);
    blanks();
    return good && at_ == text_.size();
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blanks() {
    if (!any_) return;
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }
  bool eat(char c) {
    blanks();
    return here(c);
  }
  bool here(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  bool digits() {
    const std::size_t from = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > from;
  }
  bool number() {
    here('-');
    if (!here('0') && !digits()) return false;
    if (here('.') && !digits()) return false;
    if (!here('e') && !here('E')) return true;
    if (!here('+')) here('-');
    return digits();
  }
  bool string() {
    if (!eat('"')) return false;
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return false;
    const std::string_view inside = text_.substr(from, at_++ - from);
    return any_ ? escapes_hold(inside) : decode(inside).has_value();
  }
  bool value(int depth) {
    if (!any_ && depth > 16) return false;
    if (eat('{')) {
      if (eat('}')) return true;
      do {
        if (!string() || !eat(':') || !value(depth + 1)) return false;
      } while (eat(','));
      return eat('}');
    }
    if (eat('[')) {
      if (eat(']')) return true;
      do {
        if (!value(depth + 1)) return false;
      } while (eat(','));
      return eat(']');
    }
    if (peek() == '"') return string();
    return word("true") || word("false") || word("null") || number();
  }
  std::string_view text_;
  bool any_;
  std::size_t at_ = 0;
};

inline bool valid(std::string_view text, Dialect dialect = Dialect::kOurs) {
  return Checker(text, dialect).whole();
}

}  // namespace json
