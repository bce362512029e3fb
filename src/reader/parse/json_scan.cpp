// The slower part of the JSON scanner: escapes, numbers of all kinds, nesting, UTF-8.
// Runs on the reader's worker threads.
#include "reader/parse/json_scan.hpp"

#include <charconv>
#include <cstring>
#include <limits>

namespace dft::reader {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Four hex digits, or -1.
int hex4(const char* p) {
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex_digit(p[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char* scan_number(const char* p, JsonField& field) {
  const char* start = p;
  if (*p == '-') ++p;
  if (!is_digit(*p)) return nullptr;
  const char* digits = p;
  std::uint64_t value = 0;
  while (is_digit(*p)) {
    value = value * 10 + static_cast<std::uint64_t>(*p - '0');  // meaningless past 19 digits
    ++p;
  }
  if (*digits == '0' && p - digits > 1) return nullptr;
  bool whole = true;
  if (*p == '.') {
    whole = false;
    if (!is_digit(*++p)) return nullptr;
    while (is_digit(*p)) ++p;
  }
  if (*p == 'e' || *p == 'E') {
    whole = false;
    ++p;
    if (*p == '+' || *p == '-') ++p;
    if (!is_digit(*p)) return nullptr;
    while (is_digit(*p)) ++p;
  }
  field.value = {start, static_cast<std::size_t>(p - start)};
  field.kind = JsonKind::kNumber;
  if (whole) {
    if (p - digits <= 18) {
      field.number =
          *start == '-' ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
      field.kind = JsonKind::kInt;
    } else {
      const auto got = std::from_chars(start, p, field.number);
      if (got.ec == std::errc()) field.kind = JsonKind::kInt;
    }
  }
  return p;
}

const char* word(const char* p, std::string_view text, JsonKind kind, JsonField& field) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (p[i] != text[i]) return nullptr;
  }
  field.value = {p, text.size()};
  field.kind = kind;
  return p + text.size();
}

const char* value_at(const char* p, JsonField& field, int depth);

// p stands behind the opening bracket.
const char* container(const char* p, bool object, int depth) {
  if (depth >= kMaxDepth) return nullptr;
  const char close = object ? '}' : ']';
  p = skip_space(p);
  if (*p == close) return p + 1;
  for (;;) {
    if (object) {
      if (*p != '"') return nullptr;
      bool escaped = false;
      p = string_end(p + 1, escaped);
      if (p == nullptr) return nullptr;
      p = skip_space(p + 1);
      if (*p != ':') return nullptr;
      p = skip_space(p + 1);
    }
    JsonField inner;
    p = value_at(p, inner, depth + 1);
    if (p == nullptr) return nullptr;
    p = skip_space(p);
    if (*p == close) return p + 1;
    if (*p != ',') return nullptr;
    p = skip_space(p + 1);
  }
}

const char* value_at(const char* p, JsonField& field, int depth) {
  const char* start = p;
  switch (*p) {
    case '"': {
      bool escaped = false;
      p = string_end(p + 1, escaped);
      if (p == nullptr) return nullptr;
      field.value = {start + 1, static_cast<std::size_t>(p - start - 1)};
      field.kind = escaped ? JsonKind::kEscaped : JsonKind::kString;
      return p + 1;
    }
    case '{':
    case '[':
      p = container(p + 1, *start == '{', depth);
      if (p == nullptr) return nullptr;
      field.value = {start, static_cast<std::size_t>(p - start)};
      field.kind = *start == '{' ? JsonKind::kObject : JsonKind::kArray;
      return p;
    case 't':
      return word(p, "true", JsonKind::kTrue, field);
    case 'f':
      return word(p, "false", JsonKind::kFalse, field);
    case 'n':
      return word(p, "null", JsonKind::kNull, field);
    default:
      return scan_number(p, field);
  }
}

// Length of the valid UTF-8 sequence at p, 0 if there is none.
std::size_t sequence(const unsigned char* p, std::size_t left) {
  const auto follows = [p](std::size_t i) { return (p[i] & 0xc0) == 0x80; };
  const unsigned char a = p[0];
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return left >= 2 && follows(1) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    if (left < 3 || !follows(1) || !follows(2)) return 0;
    if ((a == 0xe0 && p[1] < 0xa0) || (a == 0xed && p[1] > 0x9f)) return 0;
    return 3;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    if ((a == 0xf0 && p[1] < 0x90) || (a == 0xf4 && p[1] > 0x8f)) return 0;
    return 4;
  }
  return 0;
}

void append_character(std::string& out, unsigned c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

// The escape at p, which stands on the backslash; the text has been checked. Returns its end.
const char* append_escape(std::string& out, const char* p, const char* end) {
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  const auto at = kFrom.find(p[1]);
  if (at != std::string_view::npos) {
    out += kTo[at];
    return p + 2;
  }
  auto code = static_cast<unsigned>(hex4(p + 2));
  p += 6;
  if (code >= 0xd800 && code < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const int low = hex4(p + 2);
    if (low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<unsigned>(low) - 0xdc00);
      p += 6;
    }
  }
  if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
  append_character(out, code);
  return p;
}

}  // namespace

const char* long_number(const char* p, std::int64_t& out) {
  const char* start = p;
  std::uint64_t value = 0;
  for (;;) {
    std::uint64_t digits;
    const std::uint64_t others = no_digits(p, digits);
    const unsigned count = others == 0 ? 8 : static_cast<unsigned>(__builtin_ctzll(others)) / 8;
    if (count == 0) break;
    static constexpr std::uint64_t kPowers[] = {1,      10,      100,      1000,     10000,
                                                100000, 1000000, 10000000, 100000000};
    value = value * kPowers[count] + eight_digits(digits << (8 * (8 - count)));
    p += count;
    if (count < 8 || p - start > 18) break;
  }
  if (p - start > 18 || *start == '0') return nullptr;
  out = static_cast<std::int64_t>(value);
  return p;
}

const char* string_end_escaped(const char* p) {
  for (;;) {
    p = string_stop(p);
    if (*p == '"') return p;
    if (*p != '\\') return nullptr;
    switch (p[1]) {
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        p += 2;
        break;
      case 'u':
        if (hex4(p + 2) < 0) return nullptr;
        p += 6;
        break;
      default:
        return nullptr;
    }
  }
}

const char* scan_value(const char* p, JsonField& field) { return value_at(p, field, 0); }

bool integer_of(const JsonField& field, std::int64_t& out) {
  if (field.kind == JsonKind::kInt) {
    out = field.number;
    return true;
  }
  if (field.kind != JsonKind::kString || field.value.empty()) return false;
  const char* end = field.value.data() + field.value.size();
  const auto got = std::from_chars(field.value.data(), end, out);
  return got.ec == std::errc() && got.ptr == end;
}

bool JsonField::is_whole() const {
  if (kind == JsonKind::kInt) return true;
  return kind == JsonKind::kNumber && value.find_first_of(".eE") == std::string_view::npos;
}

bool unsigned_of(const JsonField& field, std::uint64_t& out) {
  if (!field.is_whole()) return false;
  const char* end = field.value.data() + field.value.size();
  const auto got = std::from_chars(field.value.data(), end, out);
  return got.ec == std::errc() && got.ptr == end;
}

bool scaled_number(std::string_view text, int scale, std::int64_t& out) {
  const char* p = text.data();
  const char* end = p + text.size();
  const bool negative = p != end && *p == '-';
  if (negative) ++p;
  std::int64_t value = 0;
  const auto push = [&value](int digit) {
    if (value > (kMost - digit) / 10) {
      value = kMost;
    } else if (value != kMost) {
      value = value * 10 + digit;
    }
  };
  const char* first = p;
  while (p != end && is_digit(*p)) push(*p++ - '0');
  if (p == first) return false;
  if (p != end && *p == '.') {
    ++p;
    for (; p != end && is_digit(*p); ++p) {
      if (scale > 0) {
        push(*p - '0');
        --scale;
      }
    }
  }
  if (p != end) {
    // An exponent: rare enough for a double.
    double number = 0;
    const auto got = std::from_chars(text.data(), end, number);
    if (got.ec != std::errc() || got.ptr != end) return false;
    for (; scale > 0; --scale) number *= 10;
    if (!(number > -9.2e18 && number < 9.2e18)) {
      out = number < 0 ? -kMost : kMost;
    } else {
      out = static_cast<std::int64_t>(number);
    }
    return true;
  }
  for (; scale > 0; --scale) push(0);
  out = negative ? -value : value;
  return true;
}

bool is_ascii(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
#if defined(__SSE2__)
  __m128i all = _mm_setzero_si128();
  for (; end - p >= 64; p += 64) {
    const auto* from = reinterpret_cast<const __m128i*>(p);
    all = _mm_or_si128(
        all, _mm_or_si128(_mm_or_si128(_mm_loadu_si128(from), _mm_loadu_si128(from + 1)),
                          _mm_or_si128(_mm_loadu_si128(from + 2), _mm_loadu_si128(from + 3))));
  }
  if (_mm_movemask_epi8(all) != 0) return false;
#endif
  unsigned char rest = 0;
  for (; p != end; ++p) rest = static_cast<unsigned char>(rest | static_cast<unsigned char>(*p));
  return rest < 0x80;
}

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p != end) {
    if (end - p >= 8) {
      std::uint64_t word8;
      std::memcpy(&word8, p, 8);
      if ((word8 & 0x8080808080808080U) == 0) {
        p += 8;
        continue;
      }
    }
    const std::size_t n = sequence(p, static_cast<std::size_t>(end - p));
    if (n == 0) return false;
    p += n;
  }
  return true;
}

void append_mended(std::string& out, std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p != end) {
    const std::size_t n = sequence(p, static_cast<std::size_t>(end - p));
    if (n == 0) {
      out += "\xef\xbf\xbd";
      ++p;
    } else {
      out.append(reinterpret_cast<const char*>(p), n);
      p += n;
    }
  }
}

std::string_view plain_text(std::string_view raw, bool escaped, bool valid_utf8,
                            std::string& scratch) {
  if (!escaped && valid_utf8) return raw;
  scratch.clear();
  if (!escaped) {
    append_mended(scratch, raw);
    return scratch;
  }
  const char* p = raw.data();
  const char* end = p + raw.size();
  while (p != end) {
    const auto* slash =
        static_cast<const char*>(std::memchr(p, '\\', static_cast<std::size_t>(end - p)));
    const char* stop = slash == nullptr ? end : slash;
    const std::string_view run(p, static_cast<std::size_t>(stop - p));
    if (valid_utf8) {
      scratch += run;
    } else {
      append_mended(scratch, run);
    }
    p = stop == end ? end : append_escape(scratch, stop, end);
  }
  return scratch;
}

void append_strict_json(std::string& out, std::string_view json) {
  const char* p = json.data();
  const char* end = p + json.size();
  while (p != end) {
    const auto* slash =
        static_cast<const char*>(std::memchr(p, '\\', static_cast<std::size_t>(end - p)));
    const char* stop = slash == nullptr ? end : slash;
    out.append(p, stop);
    if (stop == end) return;
    p = stop + 2;
    if (stop[1] == 'u') {
      p = stop + 6;
      const auto surrogate = [](const char* at, int first) {
        const int code = hex4(at);
        return code >= first && code < first + 0x400;
      };
      if (surrogate(stop + 2, 0xd800) && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
          surrogate(p + 2, 0xdc00)) {
        p += 6;
      } else if (surrogate(stop + 2, 0xd800) || surrogate(stop + 2, 0xdc00)) {
        out += "\\ufffd";
        continue;
      }
    }
    out.append(stop, p);
  }
}

void append_escaped(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
}

}  // namespace dft::reader
