// A JSON scanner for the few shapes that a trace needs: strings, numbers, and values to skip.
// Called by the line parser, on the reader's worker threads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace dft::reader {

// Every text that is scanned has this many readable bytes behind it, the first of them a control
// character. No JSON token holds one, so the scanner needs no end pointer.
inline constexpr std::size_t kPadding = 64;

enum class JsonKind : std::uint8_t {
  kString,   // as written between the quotes, and no escape in it
  kEscaped,  // likewise, with escapes
  kInt,      // fits 64 bits
  kNumber,   // any other number
  kTrue,
  kFalse,
  kNull,
  kObject,
  kArray,
};

// Compares with a word that is known while compiling: the compiler makes a few loads of it.
template <std::size_t N>
inline bool is(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && __builtin_memcmp(text.data(), word, N - 1) == 0;
}

#if defined(__ARM_NEON)
inline uint8x16_t bytes_at(const char* p) { return vld1q_u8(reinterpret_cast<const uint8_t*>(p)); }
// Four bits for each byte of a comparison's result: NEON has no instruction that takes one of each.
inline std::uint64_t nibbles(uint8x16_t compared) {
  const uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(compared), 4);
  return vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
}
#endif

// Whether N bytes are the same, sixteen at a time: fewer steps than memcmp takes for so many.
template <std::size_t N>
inline bool same_bytes(const char* a, const char* b) {
#if defined(__SSE2__)
  static_assert(N >= 16);
  const auto equal = [a, b](std::size_t at) {
    return _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at)),
                          _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at)));
  };
  __m128i all = equal(N - 16);
  for (std::size_t at = 0; at + 16 < N; at += 16) all = _mm_and_si128(all, equal(at));
  return _mm_movemask_epi8(all) == 0xffff;
#elif defined(__ARM_NEON)
  static_assert(N >= 16);
  const auto equal = [a, b](std::size_t at) {
    return vceqq_u8(bytes_at(a + at), bytes_at(b + at));
  };
  uint8x16_t all = equal(N - 16);
  for (std::size_t at = 0; at + 16 < N; at += 16) all = vandq_u8(all, equal(at));
  return vminvq_u8(all) == 0xff;
#else
  return __builtin_memcmp(a, b, N) == 0;
#endif
}

// One member of an object. Views into the text; strings without their quotes.
struct JsonField {
  std::string_view key;
  std::string_view value;
  std::int64_t number = 0;  // of kInt
  JsonKind kind = JsonKind::kNull;
  bool key_escaped = false;

  [[nodiscard]] bool is_string() const {
    return kind == JsonKind::kString || kind == JsonKind::kEscaped;
  }
  // Digits alone, of any number of places: a 64-bit hash does not always fit a signed integer.
  [[nodiscard]] bool is_whole() const;
  // Whether it can stand for something: a text, or a hash, which some tracers write as a number.
  [[nodiscard]] bool is_name() const { return is_string() || is_whole(); }
};

[[nodiscard]] bool is_ascii(std::string_view text);

// The first quote, backslash or control character at or after p.
inline const char* string_stop(const char* p) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i slash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1f);
  for (;; p += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
    const __m128i found = _mm_or_si128(
        control, _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, slash)));
    const int mask = _mm_movemask_epi8(found);
    if (mask != 0) return p + __builtin_ctz(static_cast<unsigned>(mask));
  }
#elif defined(__ARM_NEON)
  for (;; p += 16) {
    const uint8x16_t bytes = bytes_at(p);
    const uint8x16_t found =
        vorrq_u8(vcltq_u8(bytes, vdupq_n_u8(0x20)),
                 vorrq_u8(vceqq_u8(bytes, vdupq_n_u8('"')), vceqq_u8(bytes, vdupq_n_u8('\\'))));
    const std::uint64_t mask = nibbles(found);
    if (mask != 0) return p + __builtin_ctzll(mask) / 4;
  }
#else
  while (*p != '"' && *p != '\\' && static_cast<unsigned char>(*p) > 0x1f) ++p;
  return p;
#endif
}

// The first line end in [p, end), nullptr if there is none. `ascii` becomes false if a byte before
// it, or one of the few behind it, is no ASCII. Inline, since lines are short.
inline const char* find_line_end(const char* p, const char* end, bool& ascii) {
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi8('\n');
  const auto at = [](const char* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  const auto bits = [](__m128i bytes) {
    return std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(bytes))};
  };
  __m128i all = _mm_setzero_si128();
  for (; p < end; p += 64) {  // the padding has room for it
    const __m128i text[] = {at(p), at(p + 16), at(p + 32), at(p + 48)};
    const __m128i ends[] = {_mm_cmpeq_epi8(text[0], wanted), _mm_cmpeq_epi8(text[1], wanted),
                            _mm_cmpeq_epi8(text[2], wanted), _mm_cmpeq_epi8(text[3], wanted)};
    all = _mm_or_si128(
        all, _mm_or_si128(_mm_or_si128(text[0], text[1]), _mm_or_si128(text[2], text[3])));
    if (bits(_mm_or_si128(_mm_or_si128(ends[0], ends[1]), _mm_or_si128(ends[2], ends[3]))) == 0) {
      continue;
    }
    p += __builtin_ctzll(bits(ends[0]) | (bits(ends[1]) << 16) | (bits(ends[2]) << 32) |
                         (bits(ends[3]) << 48));
    ascii = bits(all) == 0;
    return p < end ? p : nullptr;
  }
  return nullptr;
#elif defined(__ARM_NEON)
  const uint8x16_t wanted = vdupq_n_u8('\n');
  uint8x16_t all = vdupq_n_u8(0);
  for (; p < end; p += 64) {  // the padding has room for it
    const uint8x16_t text[] = {bytes_at(p), bytes_at(p + 16), bytes_at(p + 32), bytes_at(p + 48)};
    const uint8x16_t ends[] = {vceqq_u8(text[0], wanted), vceqq_u8(text[1], wanted),
                               vceqq_u8(text[2], wanted), vceqq_u8(text[3], wanted)};
    all = vorrq_u8(all, vorrq_u8(vorrq_u8(text[0], text[1]), vorrq_u8(text[2], text[3])));
    if (vmaxvq_u8(vorrq_u8(vorrq_u8(ends[0], ends[1]), vorrq_u8(ends[2], ends[3]))) == 0) continue;
    std::size_t part = 0;
    while (nibbles(ends[part]) == 0) ++part;
    p += part * 16 + static_cast<std::size_t>(__builtin_ctzll(nibbles(ends[part]))) / 4;
    ascii = vmaxvq_u8(all) < 0x80;
    return p < end ? p : nullptr;
  }
  return nullptr;
#else
  if (p >= end) return nullptr;
  const auto size = static_cast<std::size_t>(end - p);
  const auto* found = static_cast<const char*>(__builtin_memchr(p, '\n', size));
  ascii = found != nullptr && is_ascii({p, static_cast<std::size_t>(found - p)});
  return found;
#endif
}

// p stands behind the opening quote. The closing one, or nullptr if the string is not JSON.
const char* string_end_escaped(const char* p);
inline const char* string_end(const char* p, bool& escaped) {
  p = string_stop(p);
  escaped = *p == '\\';
  if (*p == '"') [[likely]]
    return p;
  return escaped ? string_end_escaped(p) : nullptr;
}

// Of each of eight bytes, a bit that is set if it is no digit. `digits` becomes their values.
inline std::uint64_t no_digits(const char* p, std::uint64_t& digits) {
  std::uint64_t word;
  __builtin_memcpy(&word, p, 8);
  digits = word ^ 0x3030303030303030U;
  // Without the high bits, or one byte would spoil the next.
  return (((digits & 0x7f7f7f7f7f7f7f7fU) + 0x7676767676767676U) | word) & 0x8080808080808080U;
}
// The number that eight values of digits make: pairs are added up.
inline std::uint64_t eight_digits(std::uint64_t digits) {
  digits = (digits * 10) + (digits >> 8);
  return (((digits & 0x000000ff000000ffU) * 0x000f424000000064U) +
          (((digits >> 16) & 0x000000ff000000ffU) * 0x0000271000000001U)) >>
         32;
}

// Digits of at most 18 places, without a leading zero; nullptr if there is anything else. Eight at
// a time: a line has some sixty digits, and one by one they cost more than all the rest of it.
const char* long_number(const char* p, std::int64_t& out);  // of at least eight
inline const char* whole_number(const char* p, std::int64_t& out) {
  std::uint64_t digits;
  const std::uint64_t others = no_digits(p, digits);
  if (others == 0) [[unlikely]]
    return long_number(p, out);
  const unsigned bits = static_cast<unsigned>(__builtin_ctzll(others)) & ~7U;
  // Not one after the other: whether a duration is zero is nothing that can be foreseen.
  const bool zeros = (static_cast<unsigned>(*p == '0') & static_cast<unsigned>(bits > 8)) != 0;
  if (bits == 0 || zeros) [[unlikely]]
    return nullptr;
  // The digits move to the end, zeros before them.
  out = static_cast<std::int64_t>(eight_digits(digits << (64 - bits)));
  return p + bits / 8;
}

// Its end alone.
inline const char* whole_number_end(const char* p) {
  std::uint64_t digits;
  const char* word = p;
  std::uint64_t others = no_digits(word, digits);
  if (others == 0) others = no_digits(word += 8, digits);
  if (others == 0 || *p == '0') [[unlikely]] {
    std::int64_t number;
    return whole_number(p, number);
  }
  word += static_cast<unsigned>(__builtin_ctzll(others)) / 8;
  return word == p ? nullptr : word;
}

// Likewise; quickest for sixteen, which a time of this age has in microseconds.
inline const char* time_number(const char* p, std::int64_t& out) {
  std::uint64_t high;
  std::uint64_t low;
  const std::uint64_t others = no_digits(p, high) | no_digits(p + 8, low);
  const bool more = p[16] >= '0' && p[16] <= '9';
  if (others != 0 || more || *p == '0') [[unlikely]]
    return whole_number(p, out);
  out = static_cast<std::int64_t>(eight_digits(high) * 100000000 + eight_digits(low));
  return p + 16;
}

// A value of any kind at p, its fields filled but the key; nullptr if it is not JSON. Objects and
// arrays are checked to a depth of 64.
const char* scan_value(const char* p, JsonField& field);
// Blanks, line ends among them.
inline const char* skip_space(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r') ++p;
  return p;
}
// Blanks inside a line.
inline const char* skip_blanks(const char* p) {
  while (*p == ' ' || *p == '\t' || *p == '\r') ++p;
  return p;
}

// The integer that a field holds, also as a string ("count":"3"), as some tracers write it.
bool integer_of(const JsonField& field, std::int64_t& out);
// A whole number from 0 to 2^64 - 1.
bool unsigned_of(const JsonField& field, std::uint64_t& out);
// A number, also in a string, times 10^scale, cut off below; saturates. False if it is none.
bool scaled_number(std::string_view text, int scale, std::int64_t& out);

// What the JSON string says, as valid UTF-8: escapes resolved, lone surrogates and bytes that are
// no UTF-8 replaced by U+FFFD. Returns the text itself where it is that already.
std::string_view plain_text(std::string_view raw, bool escaped, bool valid_utf8,
                            std::string& scratch);
// Appends JSON in which no lone surrogate is left: their escapes become that of U+FFFD. Strict
// readers refuse a whole document for one of them.
void append_strict_json(std::string& out, std::string_view json);
// Appends the text as the inside of a JSON string.
void append_escaped(std::string& out, std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);
// Appends the text with U+FFFD for every byte that is no part of valid UTF-8.
void append_mended(std::string& out, std::string_view text);

}  // namespace dft::reader
