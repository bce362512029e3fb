// The line parser. Four levels, from the fastest that knows the layout of this project's tracer to
// the one that takes any JSON object. Runs on worker threads.
#include "reader/parse/parser.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace dft::reader {
namespace {

template <std::size_t N>
bool eat(const char*& p, const char (&text)[N]) {
  if (std::memcmp(p, text, N - 1) != 0) return false;
  p += N - 1;
  return true;
}

bool string_at(const char*& p, JsonText& out) {
  const char* end = string_end(p, out.escaped);
  if (end == nullptr) return false;
  out.raw = {p, static_cast<std::size_t>(end - p)};
  p = end + 1;
  return true;
}

bool number_at(const char*& p, std::int64_t& out) {
  const char* end = whole_number(p, out);
  if (end == nullptr) return false;
  p = end;
  return true;
}

// The members of an object; p stands behind its brace. With Blanks, JSON as others write it. `out`
// is only ever made larger; `count` says how many there are.
template <bool Blanks>
const char* members(const char* p, std::vector<JsonField>& out, std::size_t& count) {
  const auto gap = [](const char* at) { return Blanks ? skip_space(at) : at; };
  count = 0;
  p = gap(p);
  if (*p == '}') return p + 1;
  for (;;) {
    if (*p != '"') return nullptr;
    if (count == out.size()) out.resize(count * 2 + 16);
    JsonField& field = out[count++];
    const char* end = string_end(p + 1, field.key_escaped);
    if (end == nullptr) return nullptr;
    field.key = {p + 1, static_cast<std::size_t>(end - p - 1)};
    p = gap(end + 1);
    if (*p != ':') return nullptr;
    p = gap(p + 1);
    field.number = 0;
    if (*p == '"') {
      bool escaped = false;
      end = string_end(p + 1, escaped);
      if (end == nullptr) return nullptr;
      field.value = {p + 1, static_cast<std::size_t>(end - p - 1)};
      field.kind = escaped ? JsonKind::kEscaped : JsonKind::kString;
      p = end + 1;
    } else if (const char* stop = whole_number(p, field.number);
               stop != nullptr && (*stop == ',' || *stop == '}')) {
      field.value = {p, static_cast<std::size_t>(stop - p)};
      field.kind = JsonKind::kInt;
      p = stop;
    } else {
      field.number = 0;
      p = scan_value(p, field);
      if (p == nullptr) return nullptr;
    }
    p = gap(p);
    if (*p == '}') return p + 1;
    if (*p != ',') return nullptr;
    p = gap(p + 1);
  }
}

constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15U;

std::uint64_t load8(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

char phase_of(const JsonField& field) {
  if (field.kind == JsonKind::kString && field.value.size() == 1) {
    const char letter = field.value[0];
    // A number may have been quoted on the way.
    if (letter >= '1' && letter <= '4') return "XCAM"[letter - '1'];
    return static_cast<unsigned char>(letter) < 0x80 ? letter : kNoPhase;
  }
  if (field.kind == JsonKind::kInt && field.number >= 1 && field.number <= 4) {
    return "XCAM"[field.number - 1];
  }
  return kNoPhase;
}

// `,"ret":N` at the end of an object that is closed at `close`: where the number begins, nullptr if
// there is none. At least eight characters stand before `close`. Digits are in no string there,
// since a string would end in a quote; and a quote that is part of a key has a backslash before it.
inline const char* result_before(const char* open, const char* close, std::int64_t& number) {
  constexpr std::string_view kKey = ",\"ret\":";
  std::uint64_t values;
  const std::uint64_t others = no_digits(close - 8, values);
  const char* digits = close - (others == 0 ? 8 : __builtin_clzll(others) / 8);
  while (others == 0 && digits[-1] >= '0' && digits[-1] <= '9') --digits;
  const bool negative = digits[-1] == '-';
  const char* value = digits - static_cast<int>(negative);
  const char* key = value - kKey.size();
  if (key < open || std::memcmp(key, kKey.data(), kKey.size()) != 0) return nullptr;
  if (whole_number(digits, number) != close) return nullptr;
  if (negative) number = -number;
  return value;
}

}  // namespace

std::span<const JsonField> members_of(std::string_view args_text, std::vector<JsonField>& room) {
  std::size_t count = 0;
  if (args_text.empty() || members<false>(args_text.data() + 1, room, count) == nullptr) return {};
  return {room.data(), count};
}

std::span<const JsonField> members_of_any(std::string_view object, std::vector<JsonField>& room) {
  std::size_t count = 0;
  if (object.empty() || members<true>(object.data() + 1, room, count) == nullptr) return {};
  return {room.data(), count};
}

void Parser::begin(FileClock clock) {
  clock_ = clock;
  factor_ = 1;
  for (int i = 0; i < clock.digits; ++i) factor_ *= 10;
  most_ = std::numeric_limits<std::int64_t>::max() / factor_;
  time_known_ = false;
  // No two blocks share a number, on any thread. A block has far less than 2^32 lines.
  static std::atomic<std::uint64_t> blocks{0};
  next_ = since_ = (blocks.fetch_add(1, std::memory_order_relaxed) + 1) << 32;
}

// Padding equals no text, so that a step that begins where all was equal does not lead beyond it.
inline bool Parser::Origin::stands_at(const char* p) const {
  if (size == 0 || !same_bytes<kLeast>(p, text)) return false;
  for (std::size_t at = kLeast; at + kLeast < size; at += kLeast) {
    if (!same_bytes<kLeast>(p + at, text + at)) return false;
  }
  return same_bytes<kLeast>(p + size - kLeast, text + size - kLeast);
}

bool Parser::Origin::keep(const char* start, std::size_t length, const Event& event) {
  if (length < kLeast || length > kRoom || event.name.escaped || event.category.escaped)
    return false;
  std::memcpy(text, start, length);
  size = length;
  name_size = event.name.raw.size();
  category_size = event.category.raw.size();
  pid = event.pid;
  tid = event.tid;
  alike = 0;
  return true;
}

inline std::size_t Parser::tail_of(std::uint64_t name) { return (name * kMix) >> (64 - kTailBits); }

// Where the thread stands depends on the name; it is taken for the place where it stood first.
inline std::size_t Parser::slot_of(const char* name) const {
  const std::uint64_t word = load8(name);
  const std::uint64_t tail = load8(name + tails_[tail_of(word)]);
  return ((word + tail * kMix) * kMix) >> (64 - kOriginBits);
}

Parser::Origin* Parser::keep(const char* start, const char* end, const Event& event) {
  const auto size = static_cast<std::size_t>(end - start);
  std::uint8_t& tail = tails_[tail_of(load8(start))];
  // Behind it comes the key of the time. The padding has room for a look that far.
  if (tail == 0) tail = static_cast<std::uint8_t>(std::clamp<std::size_t>(size, 32, 70) - 14);
  Origin& origin = origins_[slot_of(start)];
  return origin.keep(start, size, event) ? &origin : nullptr;
}

// `name","cat":"text","pid":N,"tid":N`, and the key of the time if there is one. `origin` becomes
// what is kept of it.
[[gnu::always_inline]] inline bool Parser::origin_at(const char*& p, Event& event,
                                                     Origin*& origin) {
  constexpr std::string_view kCategory = "\",\"cat\":\"";
  const char* start = p;
  Origin& last = origins_[slot_of(start)];
  if (last.stands_at(p)) [[likely]] {
    event.name = {{start, last.name_size}, false};
    event.category = {{start + last.name_size + kCategory.size(), last.category_size}, false};
    event.pid = last.pid;
    event.tid = last.tid;
    event.has |= kHasTs;
    origin = &last;
    p += last.size;
    return true;
  }
  if (!string_at(p, event.name)) return false;
  if (!eat(p, ",\"cat\":\"") || !string_at(p, event.category)) return false;
  if (!eat(p, ",\"pid\":") || !number_at(p, event.pid)) return false;
  if (!eat(p, ",\"tid\":") || !number_at(p, event.tid)) return false;
  if (!eat(p, ",\"ts\":")) return true;
  event.has |= kHasTs;
  origin = keep(start, p, event);
  return true;
}

[[gnu::always_inline]] inline bool Parser::time_at(const char*& p, Event& event) {
  // A base would ask for a check of the sum; files that have one are not of this layout.
  const char* stop = time_number(p, event.ts);
  if (stop == nullptr || event.ts > most_ || clock_.base_ns != 0) return false;
  if (stop - p == 16) {
    constexpr std::int64_t kLow = 100000000;
    time_text_ = load8(p);
    time_value_ = event.ts - event.ts % kLow;
    time_known_ = time_value_ <= most_ - kLow;
  }
  p = stop;
  event.ts *= factor_;
  if (!eat(p, ",\"dur\":")) return true;
  if (!number_at(p, event.dur) || event.dur > most_) return false;
  event.dur *= factor_;
  event.has |= kHasDur;
  return true;
}

// All that comes before the phase.
[[gnu::always_inline]] inline bool Parser::head_at(const char*& p, Event& event, Origin*& origin) {
  event.has = kHasId | kHasPid | kHasTid | kHasName;
  event.ts = event.dur = 0;
  event.extra = {};
  event.brief = false;
  event.alike = 0;
  if (!eat(p, "{\"id\":") || !number_at(p, event.id)) return false;
  if (!eat(p, ",\"name\":\"") || !origin_at(p, event, origin)) return false;
  return (event.has & kHasTs) == 0 || time_at(p, event);
}

// What comes before the arguments, the host with its quotes included.
[[gnu::always_inline]] inline bool Parser::host_at(const char*& p) {
  if (!same_bytes<kHost>(p, host_)) [[unlikely]] {
    const char* hash = p + kBeforeHost.size();
    if (std::memcmp(p, kBeforeHost.data(), kBeforeHost.size()) != 0) return false;
    if (string_stop(hash) != hash + kHash || hash[kHash] != '"') return false;
    std::memcpy(host_, p, kHost);
    since_ = next_;
  }
  p += kHost;
  return true;
}

// p stands behind the host, and is left behind the record.
[[gnu::always_inline]] inline bool Parser::brief_args(const char*& p, const char* end, Event& event,
                                                      Origin* origin) {
  constexpr std::string_view kKey = "{\"hhash\":\"";
  bool ascii = false;
  // No string has a line end in it.
  const char* eol = find_line_end(p, end, ascii);
  if (eol == nullptr || eol - p < 2 || eol[-1] != '}' || eol[-2] != '}') return false;
  const char* close = eol - 2;
  if (p != close && *p != ',') return false;
  if (args_.size() < 2) args_.resize(16);
  const char* hash = p - 1 - kHash;
  const char* args = hash - kKey.size();
  args_[0] = {{args + 2, 5}, {hash, kHash}, 0, JsonKind::kString, false};
  std::int64_t number = 0;
  const char* result = result_before(p, close, number);
  if (result != nullptr) {
    const auto size = static_cast<std::size_t>(close - result);
    args_[1] = {{result - 5, 3}, {result, size}, number, JsonKind::kInt, false};
  }
  event.args_text = {args, static_cast<std::size_t>(close + 1 - args)};
  event.args = {args_.data(), result != nullptr ? std::size_t{2} : 1};
  event.brief = true;
  if (origin != nullptr) {
    if (origin->alike < since_) origin->alike = next_++;
    event.alike = origin->alike;
  }
  p = eol;
  return true;
}

// The phase and all arguments.
inline const char* Parser::rest(const char* start, const char* p, Event& event) {
  if (!eat(p, ",\"ph\":\"")) return nullptr;
  event.phase = *p++;
  const bool letter =
      (event.phase >= 'A' && event.phase <= 'Z') || (event.phase >= 'a' && event.phase <= 'z');
  if (!letter || !eat(p, "\",\"args\":{")) return nullptr;
  const char* args = p - 1;
  std::size_t count = 0;
  p = members<false>(p, args_, count);
  if (p == nullptr || *p != '}') return nullptr;
  event.args_text = {args, static_cast<std::size_t>(p - args)};
  event.args = {args_.data(), count};
  event.line = {start, static_cast<std::size_t>(p + 1 - start)};
  return p + 1;
}

const char* Parser::fast(const char* p, Event& event) {
  const char* start = p;
  Origin* origin = nullptr;
  return head_at(p, event, origin) ? rest(start, p, event) : nullptr;
}

const char* Parser::brief(const char* p, const char* end, Event& event) {
  const char* start = p;
  Origin* origin = nullptr;
  if (!head_at(p, event, origin)) return nullptr;
  const char* phase = p;
  if (event.is_own() || !host_at(p) || !brief_args(p, end, event, origin)) {
    return rest(start, phase, event);
  }
  event.phase = 'X';
  event.line = {start, static_cast<std::size_t>(p - start)};
  return p;
}

const char* Parser::repeat(const char* p, const char* end, Repeat& out) const {
  if (!eat(p, "{\"id\":")) return nullptr;
  p = whole_number_end(p);
  if (p == nullptr || !eat(p, ",\"name\":\"")) return nullptr;
  const Origin& origin = origins_[slot_of(p)];
  if (origin.alike < since_ || !origin.stands_at(p)) return nullptr;
  p += origin.size;
  std::uint64_t low;
  const bool same = time_known_ && load8(p) == time_text_;
  if (!same || no_digits(p + 8, low) != 0) return nullptr;
  p += 16;  // a seventeenth digit is no comma
  if (!eat(p, ",\"dur\":") || !number_at(p, out.dur) || out.dur > most_) return nullptr;
  if (!same_bytes<kHost>(p, host_)) return nullptr;
  p += kHost;
  bool ascii = false;
  const char* eol = find_line_end(p, end, ascii);
  if (eol == nullptr || !ascii || eol - p < 2 || eol[-1] != '}' || eol[-2] != '}') return nullptr;
  const char* close = eol - 2;
  if (p != close && *p != ',') return nullptr;
  out.has_result = result_before(p, close, out.result) != nullptr;
  out.alike = origin.alike;
  out.ts = (time_value_ + static_cast<std::int64_t>(eight_digits(low))) * factor_;
  out.dur *= factor_;
  return eol;
}

bool Parser::set_time(const JsonField& field, std::int64_t base, std::int64_t& out) const {
  const bool numeric = field.kind == JsonKind::kInt || field.kind == JsonKind::kNumber ||
                       field.kind == JsonKind::kString;
  std::int64_t value = 0;
  if (!numeric || !scaled_number(field.value, clock_.digits, value)) return false;
  // What does not fit is kept as it is written.
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (value == kMost || value == -kMost) return false;
  return !__builtin_add_overflow(value, base, &out);
}

void Parser::place(const JsonField& field, Event& event) {
  const auto whole = [&](EventHas flag, std::int64_t& out) {
    if (!integer_of(field, out)) return false;
    event.has = static_cast<std::uint8_t>(event.has | flag);
    return true;
  };
  const auto time = [&](EventHas flag, std::int64_t base, std::int64_t& out) {
    if (!set_time(field, base, out)) return false;
    event.has = static_cast<std::uint8_t>(event.has | flag);
    return true;
  };
  bool placed = false;
  if (field.key == "name") {
    placed = field.is_string();
    if (placed) {
      event.name = {field.value, field.kind == JsonKind::kEscaped};
      event.has |= kHasName;
    }
  } else if (field.key == "cat") {
    placed = field.is_string();
    if (placed) event.category = {field.value, field.kind == JsonKind::kEscaped};
  } else if (field.key == "ph") {
    event.phase = phase_of(field);
    placed = event.phase != kNoPhase;
  } else if (field.key == "id") {
    placed = whole(kHasId, event.id);
  } else if (field.key == "pid") {
    placed = whole(kHasPid, event.pid);
  } else if (field.key == "tid") {
    placed = whole(kHasTid, event.tid);
  } else if (field.key == "ts") {
    placed = time(kHasTs, clock_.base_ns, event.ts);
  } else if (field.key == "dur") {
    placed = time(kHasDur, 0, event.dur);
  } else if (field.key == "args" && field.kind == JsonKind::kObject) {
    placed = true;
    event.args_text = field.value;
    std::size_t count = 0;
    members<true>(field.value.data() + 1, args_, count);
    event.args = {args_.data(), count};
  }
  if (!placed) extra_.push_back(field);
}

const char* Parser::general(const char* p, Event& event) {
  if (*p != '{') return nullptr;
  const char* start = p;
  event = {};
  extra_.clear();
  p = skip_space(p + 1);
  while (*p != '}') {
    JsonField field;
    if (*p != '"') return nullptr;
    const char* end = string_end(p + 1, field.key_escaped);
    if (end == nullptr) return nullptr;
    field.key = {p + 1, static_cast<std::size_t>(end - p - 1)};
    p = skip_space(end + 1);
    if (*p != ':') return nullptr;
    p = scan_value(skip_space(p + 1), field);
    if (p == nullptr) return nullptr;
    place(field, event);
    p = skip_space(p);
    if (*p == '}') break;
    if (*p != ',') return nullptr;
    p = skip_space(p + 1);
    if (*p != '"') return nullptr;
  }
  ++p;
  event.extra = extra_;
  event.line = {start, static_cast<std::size_t>(p - start)};
  return p;
}

}  // namespace dft::reader
