#include "reader/parser.hpp"

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

bool string_at(const char*& p, Text& out) {
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
const char* members(const char* p, std::vector<Field>& out, std::size_t& count) {
  const auto gap = [](const char* at) { return Blanks ? skip_space(at) : at; };
  count = 0;
  p = gap(p);
  if (*p == '}') return p + 1;
  for (;;) {
    if (*p != '"') return nullptr;
    if (count == out.size()) out.resize(count * 2 + 16);
    Field& field = out[count++];
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
      field.kind = escaped ? Kind::kEscaped : Kind::kString;
      p = end + 1;
    } else if (const char* stop = whole_number(p, field.number);
               stop != nullptr && (*stop == ',' || *stop == '}')) {
      field.value = {p, static_cast<std::size_t>(stop - p)};
      field.kind = Kind::kInt;
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

char phase_of(const Field& field) {
  if (field.kind == Kind::kString && field.value.size() == 1) {
    const char letter = field.value[0];
    // A number may have been quoted on the way.
    if (letter >= '1' && letter <= '4') return "XCAM"[letter - '1'];
    return static_cast<unsigned char>(letter) < 0x80 ? letter : kNoPhase;
  }
  if (field.kind == Kind::kInt && field.number >= 1 && field.number <= 4) {
    return "XCAM"[field.number - 1];
  }
  return kNoPhase;
}

// `"ret":N` at the end of an object that is closed at `close`. Digits are in no string there, since
// a string would end in a quote; and a quote that is part of a key has a backslash before it.
bool result_before(const char* open, const char* close, Field& field) {
  constexpr std::string_view kKey = "\"ret\":";
  const char* digits = close;
  while (digits[-1] >= '0' && digits[-1] <= '9') --digits;
  const char* value = digits[-1] == '-' ? digits - 1 : digits;
  const char* key = value - kKey.size();
  if (digits == close || close - digits > 18 || key < open) return false;
  if (std::memcmp(key, kKey.data(), kKey.size()) != 0 || key[-1] != ',') return false;
  if (whole_number(digits, field.number) != close) return false;
  if (value != digits) field.number = -field.number;
  field.key = {key + 1, 3};
  field.key_escaped = false;
  field.value = {value, static_cast<std::size_t>(close - value)};
  field.kind = Kind::kInt;
  return true;
}

}  // namespace

std::span<const Field> members_of(std::string_view args_text, std::vector<Field>& room) {
  std::size_t count = 0;
  if (args_text.empty() || members<false>(args_text.data() + 1, room, count) == nullptr) return {};
  return {room.data(), count};
}

void Parser::set_clock(FileClock clock) {
  clock_ = clock;
  factor_ = 1;
  for (int i = 0; i < clock.digits; ++i) factor_ *= 10;
  most_ = std::numeric_limits<std::int64_t>::max() / factor_;
}

// `,"cat":"text","pid":N,"tid":N`
inline bool Parser::origin_at(const char*& p, Event& event) {
  constexpr std::string_view kCategory = ",\"cat\":\"";
  constexpr std::size_t kHalf = kOrigin / 2;
  const char* start = p;
  // Compared as the first and the last half of the room, which overlap.
  if (origin_size_ != 0 && std::memcmp(p, origin_text_, kHalf) == 0 &&
      std::memcmp(p + origin_size_ - kHalf, origin_text_ + origin_size_ - kHalf, kHalf) == 0) {
    event.category = {{start + kCategory.size(), category_size_}, false};
    event.pid = pid_;
    event.tid = tid_;
    p += origin_size_ - 1;
    return true;
  }
  if (!eat(p, ",\"cat\":\"") || !string_at(p, event.category)) return false;
  if (!eat(p, ",\"pid\":") || !number_at(p, event.pid)) return false;
  if (!eat(p, ",\"tid\":") || !number_at(p, event.tid)) return false;
  // With the comma behind it, or a longer number would look the same.
  const auto size = static_cast<std::size_t>(p + 1 - start);
  origin_size_ = 0;
  if (*p == ',' && size >= kHalf && size <= kOrigin && !event.category.escaped) {
    std::memcpy(origin_text_, start, size);
    origin_size_ = size;
    category_size_ = event.category.raw.size();
    pid_ = event.pid;
    tid_ = event.tid;
  }
  return true;
}

// All that comes before the phase.
inline bool Parser::head_at(const char*& p, Event& event) {
  if (!eat(p, "{\"id\":") || !number_at(p, event.id)) return false;
  if (!eat(p, ",\"name\":\"") || !string_at(p, event.name)) return false;
  if (!origin_at(p, event)) return false;
  std::uint8_t has = kHasId | kHasPid | kHasTid | kHasName;
  event.ts = event.dur = 0;
  if (eat(p, ",\"ts\":")) {
    // A base would ask for a check of the sum; files that have one are not of this layout.
    const char* stop = time_number(p, event.ts);
    if (stop == nullptr || event.ts > most_ || clock_.base_ns != 0) return false;
    p = stop;
    event.ts *= factor_;
    has |= kHasTs;
    if (eat(p, ",\"dur\":")) {
      if (!number_at(p, event.dur) || event.dur > most_) return false;
      event.dur *= factor_;
      has |= kHasDur;
    }
  }
  event.extra = {};
  event.has = has;
  event.brief = false;
  return true;
}

// p stands behind the quote that opens `hhash`, and is left behind the record.
inline bool Parser::brief_args(const char*& p, const char* end, Event& event) {
  constexpr std::size_t kHash = sizeof host_ - 1;
  constexpr std::string_view kBefore = "{\"hhash\":\"";
  if (args_.size() < 2) args_.resize(16);
  Field& host = args_[0];
  host.key = {p - 8, 5};
  host.key_escaped = false;
  host.value = {p, kHash};
  host.kind = Kind::kString;
  if (std::memcmp(p, host_, sizeof host_) != 0) {
    if (string_stop(p) != p + kHash || p[kHash] != '"') return false;
    std::memcpy(host_, p, sizeof host_);
  }
  const char* args = p - kBefore.size();
  p += sizeof host_;
  if (p >= end) return false;
  // No string has a line end in it.
  const auto* eol =
      static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
  if (eol == nullptr || eol - p < 2 || eol[-1] != '}' || eol[-2] != '}') return false;
  const char* close = eol - 2;
  if (p != close && *p != ',') return false;
  event.args_text = {args, static_cast<std::size_t>(close + 1 - args)};
  event.args = {args_.data(), result_before(p, close, args_[1]) ? std::size_t{2} : 1};
  event.brief = true;
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
  return head_at(p, event) ? rest(start, p, event) : nullptr;
}

const char* Parser::brief(const char* p, const char* end, Event& event) {
  const char* start = p;
  if (!head_at(p, event)) return nullptr;
  const char* phase = p;
  if (event.is_own() || !eat(p, ",\"ph\":\"X\",\"args\":{\"hhash\":\"") ||
      !brief_args(p, end, event)) {
    return rest(start, phase, event);
  }
  event.phase = 'X';
  event.line = {start, static_cast<std::size_t>(p - start)};
  return p;
}

bool Parser::set_time(const Field& field, std::int64_t base, std::int64_t& out) const {
  const bool numeric =
      field.kind == Kind::kInt || field.kind == Kind::kNumber || field.kind == Kind::kString;
  std::int64_t value = 0;
  if (!numeric || !scaled_number(field.value, clock_.digits, value)) return false;
  // What does not fit is kept as it is written.
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (value == kMost || value == -kMost) return false;
  return !__builtin_add_overflow(value, base, &out);
}

void Parser::place(const Field& field, Event& event) {
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
      event.name = {field.value, field.kind == Kind::kEscaped};
      event.has |= kHasName;
    }
  } else if (field.key == "cat") {
    placed = field.is_string();
    if (placed) event.category = {field.value, field.kind == Kind::kEscaped};
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
  } else if (field.key == "args" && field.kind == Kind::kObject) {
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
    Field field;
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
