#include "sink/encode.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "record/hash.hpp"
#include "sink/escape.hpp"

namespace dft::sink {
namespace {

using record::Arg;
using record::ArgType;
using record::Head;
using record::Kind;

// Enough for everything in a line but its strings.
constexpr std::size_t kFixedPart = 512;

template <std::size_t N>
char* put(char* to, const char (&literal)[N]) {
  std::memcpy(to, literal, N - 1);
  return to + N - 1;
}
char* put(char* to, std::string_view text) {
  if (text.empty()) return to;  // an empty view may have no address, which memcpy must not be given
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}
template <class T>
char* number(char* to, T value) {
  return std::to_chars(to, to + 24, value).ptr;
}

// JSON knows no NaN and no infinity; a whole float keeps its point, so that a reader sees its type.
char* real(char* to, double value) {
  if (!std::isfinite(value)) return put(to, "null");
  char* end = std::to_chars(to, to + 32, value).ptr;
  for (const char* p = to; p != end; ++p) {
    if (*p == '.' || *p == 'e') return end;
  }
  return put(end, ".0");
}

struct Field {
  Arg head;
  std::string_view bytes;
};

// Walks arguments; a length that does not fit ends the walk.
class Fields {
 public:
  Fields(const std::byte* from, const std::byte* to) : at_(from), end_(to) {}
  bool next(Field& out) {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(Arg)) return false;
    std::memcpy(&out.head, at_, sizeof(Arg));
    at_ += sizeof(Arg);
    out.bytes = {};
    if (record::has_bytes(out.head.type)) {
      const auto left = static_cast<std::size_t>(end_ - at_);
      if (out.head.word > left || record::padded(out.head.word) > left) return false;
      out.bytes = {reinterpret_cast<const char*>(at_), out.head.word};
      at_ += record::padded(out.head.word);
    }
    return true;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

// An argument may not hide the three that every event begins with.
bool is_reserved(std::string_view key) {
  return key == "hhash" || key == "p_idx" || key == "level";
}

}  // namespace

bool NameTable::read(const std::byte* payload, std::size_t size) noexcept {
  std::size_t at = 0;
  while (size - at >= sizeof(buffer::NameRecord)) {
    buffer::NameRecord head;
    std::memcpy(&head, payload + at, sizeof head);
    const std::size_t whole = record::padded(sizeof head + head.length);
    if (whole > size - at || head.id == 0 || head.id > (1u << 20)) return false;
    const std::size_t index = std::size_t{head.id} * sizeof(Place);
    if (places_.size() < index + sizeof(Place)) {
      const std::size_t before = places_.size();
      if (!places_.ensure(index + sizeof(Place) - before)) return false;
      std::memset(places_.end(), 0, index + sizeof(Place) - before);
      places_.resize(index + sizeof(Place));
    }
    if (!escaped_.ensure(head.length * kEscapeGrowth)) return false;
    const auto offset = static_cast<std::uint32_t>(escaped_.size());
    char* end = escape(escaped_.end(),
                       {reinterpret_cast<const char*>(payload + at + sizeof head), head.length});
    escaped_.set_end(end);
    const Place place{offset, static_cast<std::uint32_t>(escaped_.size()) - offset};
    std::memcpy(places_.data() + index, &place, sizeof place);
    at += whole;
  }
  return true;
}

std::string_view NameTable::text(std::uint32_t id) const noexcept {
  const std::size_t index = std::size_t{id} * sizeof(Place);
  if (id == 0 || index + sizeof(Place) > places_.size()) return "?";
  Place place;
  std::memcpy(&place, places_.view().data() + index, sizeof place);
  return escaped_.view().substr(place.offset, place.length);
}

Encoder::Encoder(const Process& process, const record::Timeline& timeline,
                 std::atomic<std::uint64_t>& next_id) noexcept
    : process_(process), timeline_(timeline), next_id_(next_id) {
  record::write_hex16(host_, process.host_hash);
}

void Encoder::set_thread(std::uint32_t thread) noexcept {
  if (thread == thread_) return;
  thread_ = thread;
  char* p = put(where_, ",\"pid\":");
  p = number(p, process_.pid);
  p = put(p, ",\"tid\":");
  p = number(p, thread);
  where_size_ = static_cast<std::size_t>(p - where_);
}

std::uint64_t Encoder::in_units(std::uint64_t ns) const noexcept {
  switch (process_.time_divisor_log10) {
    case 3:
      return ns / 1000;
    case 6:
      return ns / 1000000;
    case 9:
      return ns / 1000000000;
    default:
      return ns;
  }
}

Encoder::Result Encoder::encode(const std::byte* from, const std::byte* to, std::uint32_t thread,
                                Text& out) noexcept {
  if (!process_.thread_ids) thread = process_.pid;
  set_thread(thread);
  no_memory_ = false;
  while (from != to) {
    Head head;
    const auto left = static_cast<std::size_t>(to - from);
    if (left < sizeof head) return Result::kBadRecord;
    std::memcpy(&head, from, sizeof head);
    if (head.size < sizeof head || head.size % 8 != 0 || head.size > left)
      return Result::kBadRecord;
    const std::size_t line_start = out.size();
    const bool timed =
        head.kind == Kind::kSpan || head.kind == Kind::kInstant || head.kind == Kind::kCounter;
    if (!(timed ? line(head, from + sizeof head, out) : metadata(head, from + sizeof head, out))) {
      out.resize(line_start);
      return no_memory_ ? Result::kNoMemory : Result::kBadRecord;
    }
    set_thread(thread);
    from += head.size;
  }
  return Result::kDone;
}

bool Encoder::line(const Head& head, const std::byte* args, Text& out) noexcept {
  const std::byte* end = args + (head.size - sizeof(Head));
  std::string_view name = names_.text(head.name);
  std::string_view category = names_.text(head.category);
  Fields fields(args, end);
  Field field;
  Text inline_text;
  if ((head.flags & (record::kInlineName | record::kInlineCategory)) != 0) [[unlikely]] {
    // Names past the table's limits travel in the record, before the other arguments.
    std::string_view raw[2];
    for (int i = 0; i < 2; ++i) {
      if ((head.flags & (i == 0 ? record::kInlineName : record::kInlineCategory)) == 0) continue;
      if (!fields.next(field) || field.head.type != ArgType::kString) return false;
      raw[i] = field.bytes;
      args += sizeof(Arg) + record::padded(field.bytes.size());
    }
    if (!room(inline_text, (raw[0].size() + raw[1].size()) * kEscapeGrowth + 1)) return false;
    char* first = inline_text.end();
    char* middle = escape(first, raw[0]);
    char* last = escape(middle, raw[1]);
    if (head.flags & record::kInlineName) name = {first, static_cast<std::size_t>(middle - first)};
    if (head.flags & record::kInlineCategory) {
      category = {middle, static_cast<std::size_t>(last - middle)};
    }
  }
  std::uint64_t start = head.start;
  std::uint64_t stop = head.start + head.duration;
  if ((head.flags & record::kTimesGiven) == 0) {
    start = in_units(timeline_.to_ns(head.start));
    stop = head.kind == Kind::kSpan ? in_units(timeline_.to_ns(stop)) : start;
  }
  if (stop > last_time_) last_time_ = stop;
  if ((head.flags & record::kOwnLane) != 0) [[unlikely]]
    set_thread(own_lane(start, stop, out));

  if (!room(out, kFixedPart + name.size() + category.size())) return false;
  char* p = put(out.end(), "{\"id\":");
  p = number(p, head.id);
  p = put(p, ",\"name\":\"");
  p = put(p, name);
  p = put(p, "\",\"cat\":\"");
  p = put(p, category);
  *p++ = '"';
  p = put(p, std::string_view(where_, where_size_));
  p = put(p, ",\"ts\":");
  p = number(p, start);
  if (head.kind == Kind::kCounter) {
    out.set_end(put(p, ",\"ph\":\"C\",\"args\":{"));  // every argument of a counter is a series
    if (!arguments(args, end, true, out)) return false;
  } else {
    if (head.kind == Kind::kSpan) {
      p = put(p, ",\"dur\":");
      p = number(p, stop > start ? stop - start : 0);
      p = put(p, ",\"ph\":\"X\",\"args\":{\"hhash\":\"");
    } else {
      p = put(p, ",\"ph\":\"i\",\"args\":{\"hhash\":\"");
    }
    p = put(p, std::string_view(host_, 16));
    p = put(p, "\",\"p_idx\":");
    if (head.parent == 0) {
      p = put(p, "-1");
    } else {
      p = number(p, head.parent);
    }
    p = put(p, ",\"level\":");
    out.set_end(number(p, head.level));
    if (!arguments(args, end, false, out)) return false;
  }
  if (!room(out, 4)) return false;
  out.set_end(put(out.end(), "}}\n"));
  ++lines_;
  return true;
}

namespace {

// The last value that the program gave a key is the one that it meant.
bool is_given_again(std::uint32_t key, std::string_view inline_key, const std::byte* rest,
                    const std::byte* to) {
  Fields later(rest, to);
  Field other;
  std::string_view other_inline;
  while (later.next(other)) {
    if (other.head.type == ArgType::kInlineKey) {
      other_inline = other.bytes;
      continue;
    }
    if (key != 0 ? other.head.key == key : other.head.key == 0 && other_inline == inline_key)
      return true;
  }
  return false;
}

}  // namespace

// Underscores after a reserved key, one more than any other argument of that name has.
char* Encoder::rename(char* p, std::string_view key, const std::byte* from,
                      const std::byte* to) const noexcept {
  std::size_t most = 0;
  Fields fields(from, to);
  Field field;
  while (fields.next(field)) {
    std::string_view other = field.head.key != 0 ? names_.text(field.head.key) : std::string_view();
    if (!other.starts_with(key)) continue;
    other.remove_prefix(key.size());
    if (other.find_first_not_of('_') == std::string_view::npos) most = std::max(most, other.size());
  }
  for (std::size_t i = 0; i <= most && i < 60; ++i) *p++ = '_';
  return p;
}

bool Encoder::arguments(const std::byte* from, const std::byte* to, bool first,
                        Text& out) noexcept {
  Fields fields(from, to);
  Field field;
  std::string_view inline_key;
  const std::byte* rest = from;
  while (fields.next(field)) {
    rest +=
        sizeof(Arg) + (record::has_bytes(field.head.type) ? record::padded(field.bytes.size()) : 0);
    if (field.head.type == ArgType::kInlineKey) {
      inline_key = field.bytes;
      continue;
    }
    if (is_given_again(field.head.key, inline_key, rest, to)) {
      inline_key = {};
      continue;
    }
    const std::string_view key = field.head.key != 0 ? names_.text(field.head.key) : inline_key;
    const std::size_t key_room = key.size() * (field.head.key != 0 ? 1 : kEscapeGrowth);
    if (!room(out, key_room + field.bytes.size() * kEscapeGrowth + 128)) return false;
    char* p = out.end();
    if (!first) *p++ = ',';
    first = false;
    *p++ = '"';
    p = field.head.key != 0 ? put(p, key) : escape(p, key);
    if (is_reserved(key)) [[unlikely]]
      p = rename(p, key, from, to);
    *p++ = '"';
    *p++ = ':';
    switch (field.head.type) {
      case ArgType::kInt:
        p = number(p, static_cast<std::int64_t>(field.head.word));
        break;
      case ArgType::kUint:
        p = number(p, field.head.word);
        break;
      case ArgType::kBool:
        p = field.head.word != 0 ? put(p, "true") : put(p, "false");
        break;
      case ArgType::kFloat: {
        double value;
        std::memcpy(&value, &field.head.word, sizeof value);
        p = real(p, value);
        break;
      }
      case ArgType::kHash:
        *p++ = '"';
        p = record::write_hex16(p, field.head.word);
        *p++ = '"';
        break;
      case ArgType::kString:
        *p++ = '"';
        p = escape(p, field.bytes);
        *p++ = '"';
        break;
      default:
        p = put(p, "null");
        break;
    }
    out.set_end(p);
    inline_key = {};
  }
  return true;
}

bool Encoder::metadata(const Head& head, const std::byte* args, Text& out) noexcept {
  Fields fields(args, args + (head.size - sizeof(Head)));
  Field value;
  Field key;
  if ((head.flags & record::kInlineName) != 0 && !fields.next(key)) return false;
  if (!fields.next(value)) return false;
  if (!room(out, kFixedPart + names_.text(head.name).size() +
                     (key.bytes.size() + value.bytes.size()) * kEscapeGrowth)) {
    return false;
  }
  const bool hashed = head.kind == Kind::kFile || head.kind == Kind::kString;
  char* p = put(out.end(), "{\"id\":");
  p = number(p, hashed || head.id == 0 ? next_id_.fetch_add(1) : head.id);
  switch (head.kind) {
    case Kind::kMetadata:
      p = put(p, ",\"name\":\"CM");
      break;
    case Kind::kThread:
      p = put(p, ",\"name\":\"thread_name");
      break;
    case Kind::kFile:
      p = put(p, ",\"name\":\"FH");
      break;
    case Kind::kString:
      p = put(p, ",\"name\":\"SH");
      break;
    default:
      return false;
  }
  p = put(p, "\",\"cat\":\"dftracer\"");
  p = put(p, std::string_view(where_, where_size_));
  p = put(p, ",\"ph\":\"M\",\"args\":{\"hhash\":\"");
  p = put(p, std::string_view(host_, 16));
  p = put(p, "\",\"name\":\"");
  if (head.kind == Kind::kMetadata) {
    p = (head.flags & record::kInlineName) != 0 ? escape(p, key.bytes)
                                                : put(p, names_.text(head.name));
    p = put(p, "\",\"value\":\"");
    p = escape(p, value.bytes);
  } else {
    p = escape(p, value.bytes);
    p = put(p, "\",\"value\":\"");
    p = hashed ? record::write_hex16(p, head.id) : put(p, "thread_name");
  }
  out.set_end(put(p, "\"}}\n"));
  ++lines_;
  return true;
}

// The lane, shown as a thread of its own beside the real one, on which a crossing span fits.
std::uint32_t Encoder::own_lane(std::uint64_t start, std::uint64_t end, Text& out) noexcept {
  constexpr std::uint32_t kThreadBits = 22;  // the kernel's thread ids are smaller
  const std::size_t count = lane_ends_.size() / sizeof(LaneEnd);
  auto* lanes = reinterpret_cast<LaneEnd*>(lane_ends_.data());
  std::uint32_t number_of_thread = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (lanes[i].thread != thread_) continue;
    ++number_of_thread;
    if (lanes[i].end <= start || number_of_thread == 1023) {
      lanes[i].end = end;
      return thread_ + (number_of_thread << kThreadBits);
    }
  }
  ++number_of_thread;
  const LaneEnd fresh{thread_, end};
  const std::uint32_t real_thread = thread_;
  const std::uint32_t shown = thread_ + (number_of_thread << kThreadBits);
  lane_ends_.append({reinterpret_cast<const char*>(&fresh), sizeof fresh});
  if (out.ensure(kFixedPart)) {
    set_thread(shown);
    char* p = put(out.end(), "{\"id\":");
    p = number(p, next_id_.fetch_add(1));
    p = put(p, ",\"name\":\"thread_name\",\"cat\":\"dftracer\"");
    p = put(p, std::string_view(where_, where_size_));
    p = put(p, ",\"ph\":\"M\",\"args\":{\"hhash\":\"");
    p = put(p, std::string_view(host_, 16));
    p = put(p, "\",\"name\":\"");
    p = number(p, real_thread);
    p = put(p, " crossing ");
    p = number(p, number_of_thread);
    out.set_end(put(p, "\",\"value\":\"thread_name\"}}\n"));
    ++lines_;
    set_thread(real_thread);
  }
  return shown;
}

bool Encoder::lost(std::uint64_t events, std::uint64_t at_ns, Text& out) noexcept {
  if (!room(out, kFixedPart)) return false;
  set_thread(process_.pid);
  char* p = put(out.end(), "{\"id\":");
  p = number(p, next_id_.fetch_add(1));
  p = put(p, ",\"name\":\"lost\",\"cat\":\"dftracer\"");
  p = put(p, std::string_view(where_, where_size_));
  p = put(p, ",\"ts\":");
  p = number(p, in_units(at_ns));
  p = put(p, ",\"ph\":\"i\",\"args\":{\"hhash\":\"");
  p = put(p, std::string_view(host_, 16));
  p = put(p, "\",\"p_idx\":-1,\"level\":1,\"events\":");
  p = number(p, events);
  out.set_end(put(p, "}}\n"));
  ++lines_;
  return true;
}

bool Encoder::end(const End& what, Text& out) noexcept {
  if (!room(out, kFixedPart)) return false;
  set_thread(process_.pid);
  char* p = put(out.end(), "{\"id\":");
  p = number(p, next_id_.fetch_add(1));
  p = put(p, ",\"name\":\"end\",\"cat\":\"dftracer\"");
  p = put(p, std::string_view(where_, where_size_));
  p = put(p, ",\"ts\":");
  const std::uint64_t seen =
      last_time_ != 0 ? last_time_ : in_units(timeline_.to_ns(timeline_.until));
  p = number(p, what.at_ns == 0 ? seen : in_units(what.at_ns));
  p = put(p, ",\"dur\":0,\"ph\":\"X\",\"args\":{\"hhash\":\"");
  p = put(p, std::string_view(host_, 16));
  p = put(p, "\",\"p_idx\":-1,\"level\":1");
  if (what.details) {
    p = put(p, ",\"num_events\":");
    p = number(p, what.records);
  }
  if (what.lost != 0) {
    p = put(p, ",\"lost\":");
    p = number(p, what.lost);
  }
  if (what.recovered) p = put(p, ",\"recovered\":true");
  out.set_end(put(p, "}}\n"));
  ++lines_;
  return true;
}

}  // namespace dft::sink
