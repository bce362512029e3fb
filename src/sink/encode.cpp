#include "sink/encode.hpp"

#include <algorithm>

#include "record/hash.hpp"
#include "sink/escape.hpp"
#include "sink/fields.hpp"
#include "sink/json.hpp"
#include "sink/json_check.hpp"

namespace dft::sink {
namespace {

using record::Arg;
using record::ArgType;
using record::Head;
using record::Kind;

// An argument may not hide the three that every event begins with.
bool is_reserved(std::string_view key) {
  return key == "hhash" || key == "p_idx" || key == "level";
}

}  // namespace

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
  if ((head.flags & record::kForeign) != 0) [[unlikely]] {
    if (!foreign_thread(fields, args)) return false;
    start = in_units(start);
    stop = in_units(stop);
  } else if ((head.flags & record::kTimesGiven) == 0) {
    start = in_units(timeline_.to_ns(head.start));
    stop = head.kind == Kind::kSpan ? in_units(timeline_.to_ns(stop)) : start;
  }
  if (stop > last_time_) last_time_ = stop;
  bool own = (head.flags & record::kOwnLane) != 0;
  if (!own && process_.thread_ids && head.kind == Kind::kSpan &&
      (head.flags & (record::kTimesGiven | record::kForeign)) == 0) {
    own = !nesting_.fits(thread_, start, stop);
  }
  if (own) [[unlikely]]
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
    if (!arguments(args, end, head.start, true, out)) return false;
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
    if (!arguments(args, end, head.start, false, out)) return false;
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

bool Encoder::arguments(const std::byte* from, const std::byte* to, std::uint64_t start, bool first,
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
      case ArgType::kTicks:
        p = number(p, in_units(timeline_.to_ns(start + field.head.word)) -
                          in_units(timeline_.to_ns(start)));
        break;
      case ArgType::kJson:
        if (is_json(field.bytes)) [[likely]] {
          p = put(p, field.bytes);
          break;
        }
        [[fallthrough]];
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

}  // namespace dft::sink
