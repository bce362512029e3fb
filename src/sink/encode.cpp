#include "sink/encode.hpp"

#include <algorithm>

#include "format/escape.hpp"
#include "format/hash.hpp"
#include "sink/arg_walk.hpp"
#include "sink/json_check.hpp"
#include "sink/json_write.hpp"

namespace dft::sink {
namespace {

using format::escape;
using format::kEscapeGrowth;
using record::Arg;
using record::ArgType;
using record::Head;
using record::Kind;

constexpr bool is_span(Kind kind) { return kind == Kind::kSpan || kind == Kind::kCall; }
constexpr bool is_timed(Kind kind) {
  return is_span(kind) || kind == Kind::kInstant || kind == Kind::kCounter;
}

}  // namespace

Encoder::Encoder(const ProcessInfo& process, const record::ClockMap& clock_map,
                 std::atomic<std::uint64_t>& next_id) noexcept
    : process_(process), clock_map_(clock_map), next_id_(next_id) {
  format::write_hex16(host_, process.host_hash);
  char* p = put(span_, ",\"ph\":\"X\",\"args\":{\"hhash\":\"");
  p = put(p, std::string_view(host_, 16));
  p = put(p, "\",\"p_idx\":");
  span_size_ = static_cast<std::size_t>(p - span_);
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
                                MmapBuffer& out) noexcept {
  if (!process_.thread_ids) thread = process_.pid;
  set_thread(thread);
  no_memory_ = false;
  while (from != to) {
    const std::size_t size = record::size_of_record(from, static_cast<std::size_t>(to - from));
    if (size == 0) return Result::kBadRecord;
    const std::size_t line_start = out.size();
    if (!encode_one(from, from + size, out)) {
      out.resize(line_start);
      return no_memory_ ? Result::kNoMemory : Result::kBadRecord;
    }
    set_thread(thread);
    from += size;
  }
  return Result::kDone;
}

bool Encoder::encode_one(const std::byte* from, const std::byte* to, MmapBuffer& out) noexcept {
  record::Call call;
  std::memcpy(&call, from, sizeof call);
  if (call.kind != Kind::kCall) {
    Head head;
    std::memcpy(&head, from, sizeof head);
    from += sizeof head;
    return is_timed(head.kind) ? line(head, from, to, out) : metadata(head, from, to, out);
  }
  from += sizeof call;
  std::uint64_t parent = 0;
  if ((call.flags & record::kNested) != 0) {
    if (to - from < 8) return false;
    std::memcpy(&parent, from, sizeof parent);
    from += sizeof parent;
  }
  // Calls never have inline names, given times or another tracer's thread.
  if ((call.flags & ~(record::kNested | record::kOwnLane)) != 0) return false;
  const auto flags = static_cast<std::uint8_t>(call.flags & record::kOwnLane);
  return line({call.size, call.kind, flags, call.level, call.shape, 0, call.id, parent, call.start,
               call.duration},
              from, to, out);
}

Encoder::Times Encoder::times_of(const Head& head) const noexcept {
  const std::uint64_t stop = head.start + head.duration;
  if ((head.flags & record::kForeign) != 0) return {in_units(head.start), in_units(stop)};
  if ((head.flags & record::kTimesGiven) != 0) return {head.start, stop};
  const std::uint64_t start = in_units(clock_map_.to_ns(head.start));
  return {start, is_span(head.kind) ? in_units(clock_map_.to_ns(stop)) : start};
}

// Removes what precedes the arguments from a record: names that did not fit into the name table,
// and the thread that another tracer gave.
bool Encoder::take_front(const Head& head, const std::byte*& args, const std::byte* end,
                         std::string_view (&names)[2]) noexcept {
  ArgCursor cursor(args, end);
  ArgView arg;
  for (int i = 0; i < 2; ++i) {
    if ((head.flags & (i == 0 ? record::kInlineName : record::kInlineCategory)) == 0) continue;
    if (!cursor.next(arg) || arg.head.type != ArgType::kString) return false;
    names[i] = arg.bytes;
    args += sizeof(Arg) + record::padded(arg.bytes.size());
  }
  return (head.flags & record::kForeign) == 0 || foreign_thread(cursor, args);
}

// The cached line prefix, or one built in scratch space.
bool Encoder::front_of(const Head& head, const std::string_view (&names)[2],
                       Front& front) noexcept {
  const std::string_view where(where_, where_size_);
  constexpr std::uint8_t kInline = record::kInlineName | record::kInlineCategory;
  if ((head.flags & kInline) == 0) [[likely]] {
    if (LinePrefix* prefix = prefixes_.find(head, thread_, where, names_)) [[likely]] {
      front = {{prefix->text, prefix->size}, &prefix->shape};
      return true;
    }
  }
  Label name{names_.text(head.name), false};
  Label category{names_.text(head.category), false};
  if ((head.flags & record::kInlineName) != 0) name = {names[0], true};
  if ((head.flags & record::kInlineCategory) != 0) category = {names[1], true};
  scratch_shape_.words = 0;
  if (head.kind == Kind::kCall) {
    scratch_shape_ = parse_shape(name.text);
    name.text = scratch_shape_.name;
    category.text = scratch_shape_.category;
  }
  scratch_.resize(0);
  const std::size_t longest = (name.text.size() + category.text.size()) * kEscapeGrowth;
  if (!room(scratch_, longest + where.size() + kPrefixFixed)) return false;
  scratch_.set_end(put_prefix(scratch_.end(), name, category, where));
  front = {scratch_.view(), &scratch_shape_};
  return true;
}

bool Encoder::line(const Head& head, const std::byte* args, const std::byte* end,
                   MmapBuffer& out) noexcept {
  const bool is_call = head.kind == Kind::kCall;
  std::string_view names[2];
  constexpr std::uint8_t kInFront =
      record::kInlineName | record::kInlineCategory | record::kForeign;
  if ((head.flags & kInFront) != 0) [[unlikely]] {
    if (!take_front(head, args, end, names)) return false;
  }
  const auto [start, stop] = times_of(head);
  if (stop > last_time_) last_time_ = stop;
  bool own = (head.flags & record::kOwnLane) != 0;
  if (!own && process_.thread_ids && is_span(head.kind) &&
      (head.flags & (record::kTimesGiven | record::kForeign)) == 0) {
    own = !nesting_.fits(thread_, start, stop);
  }
  if (own) [[unlikely]]
    set_thread(own_lane(start, stop));

  Front front;
  if (!front_of(head, names, front) || !room(out, kFixedPart + front.text.size())) return false;
  char* p = put(out.end(), "{\"id\":");
  p = number(p, head.id);
  p = put_in_steps<kPrefixStep>(p, front.text.data(), front.text.size());
  p = number(p, start);
  if (head.kind == Kind::kCounter) {
    out.set_end(put(p, ",\"ph\":\"C\",\"args\":{"));  // every argument of a counter is a series
    if (!arguments(args, end, head.start, true, out)) return false;
  } else {
    if (is_span(head.kind)) {
      p = put(p, ",\"dur\":");
      p = number(p, stop > start ? stop - start : 0);
      p = put_in_steps<sizeof span_>(p, span_, span_size_);
    } else {
      p = put(p, ",\"ph\":\"i\",\"args\":{\"hhash\":\"");
      p = put(p, std::string_view(host_, 16));
      p = put(p, "\",\"p_idx\":");
    }
    if (head.parent == 0) {
      p = put(p, "-1");
    } else {
      p = number(p, head.parent);
    }
    p = put(p, ",\"level\":");
    out.set_end(number(p, head.level));
    if (!(is_call ? words(*front.shape, args, end, out)
                  : arguments(args, end, head.start, false, out))) {
      return false;
    }
  }
  if (!room(out, 4)) return false;
  out.set_end(put(out.end(), "}}\n"));
  ++lines_;
  return true;
}

namespace {

void write_word(CallShape::ShapeWord& word, std::uint64_t value) {
  char* p = word.text + word.key_size;
  if (word.hash) {
    *p++ = '"';
    p = format::write_hex16(p, value);
    *p++ = '"';
  } else {
    p = number(p, static_cast<std::int64_t>(value));
  }
  word.value = value;
  word.size = static_cast<std::uint8_t>(p - word.text);
}

}  // namespace

// Stops at the shorter of record and shape.
bool Encoder::words(CallShape& shape, const std::byte* from, const std::byte* to,
                    MmapBuffer& out) noexcept {
  if (!room(out, record::kMostShapeWords * CallShape::kPiece)) return false;
  char* p = out.end();
  for (std::uint32_t i = 0; i < shape.words && static_cast<std::size_t>(to - from) >= 8; ++i) {
    CallShape::ShapeWord& word = shape.word[i];
    std::uint64_t value;
    std::memcpy(&value, from, sizeof value);
    from += sizeof value;
    if (value != word.value || word.size == 0) write_word(word, value);
    std::memcpy(p, word.text, CallShape::kPiece);
    p += word.size;
  }
  out.set_end(p);
  return true;
}

namespace {

// False if no key can occur twice, which a look at the ids shows.
bool may_repeat(const std::byte* from, const std::byte* to) {
  ArgCursor cursor(from, to);
  ArgView arg;
  std::uint64_t seen = 0;
  while (cursor.next(arg)) {
    if (arg.head.type == ArgType::kInlineKey) continue;
    const std::uint64_t bit = std::uint64_t{1} << arg.head.key % 64;
    if ((seen & bit) != 0) return true;
    seen |= bit;
  }
  return false;
}

// The last value given for a key wins.
bool is_given_again(std::uint32_t key, std::string_view inline_key, const std::byte* rest,
                    const std::byte* to) {
  ArgCursor later(rest, to);
  ArgView other;
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

// Appends underscores to a reserved key: one more than on any other argument of that name.
char* Encoder::rename(char* p, std::string_view key, const std::byte* from,
                      const std::byte* to) const noexcept {
  std::size_t most = 0;
  ArgCursor cursor(from, to);
  ArgView arg;
  while (cursor.next(arg)) {
    std::string_view other = arg.head.key != 0 ? names_.text(arg.head.key) : std::string_view();
    if (!other.starts_with(key)) continue;
    other.remove_prefix(key.size());
    if (other.find_first_not_of('_') == std::string_view::npos) most = std::max(most, other.size());
  }
  for (std::size_t i = 0; i <= most && i < 60; ++i) *p++ = '_';
  return p;
}

bool Encoder::arguments(const std::byte* from, const std::byte* to, std::uint64_t start, bool first,
                        MmapBuffer& out) noexcept {
  ArgCursor cursor(from, to);
  ArgView arg;
  std::string_view inline_key;
  const bool look_ahead = may_repeat(from, to);
  while (cursor.next(arg)) {
    if (arg.head.type == ArgType::kInlineKey) {
      inline_key = arg.bytes;
      continue;
    }
    if (look_ahead && is_given_again(arg.head.key, inline_key, cursor.rest(), to)) {
      inline_key = {};
      continue;
    }
    const auto [key, reserved] = arg.head.key != 0
                                     ? names_.key(arg.head.key)
                                     : NameTable::ArgKey{inline_key, is_reserved(inline_key)};
    const std::size_t key_room = key.size() * (arg.head.key != 0 ? 1 : kEscapeGrowth);
    if (!room(out, key_room + arg.bytes.size() * kEscapeGrowth + 128)) return false;
    char* p = out.end();
    if (!first) *p++ = ',';
    first = false;
    *p++ = '"';
    p = arg.head.key != 0 ? put_in_steps(p, key.data(), key.size()) : escape(p, key);
    if (reserved) [[unlikely]]
      p = rename(p, key, from, to);
    *p++ = '"';
    *p++ = ':';
    switch (arg.head.type) {
      case ArgType::kInt:
        p = number(p, static_cast<std::int64_t>(arg.head.word));
        break;
      case ArgType::kUint:
        p = number(p, arg.head.word);
        break;
      case ArgType::kBool:
        p = arg.head.word != 0 ? put(p, "true") : put(p, "false");
        break;
      case ArgType::kFloat: {
        double value;
        std::memcpy(&value, &arg.head.word, sizeof value);
        p = real(p, value);
        break;
      }
      case ArgType::kHash:
        *p++ = '"';
        p = format::write_hex16(p, arg.head.word);
        *p++ = '"';
        break;
      case ArgType::kTicks:
        p = number(p, in_units(clock_map_.to_ns(start + arg.head.word)) -
                          in_units(clock_map_.to_ns(start)));
        break;
      case ArgType::kJson:
        if (is_json(arg.bytes)) [[likely]] {
          p = put(p, arg.bytes);
          break;
        }
        [[fallthrough]];
      case ArgType::kString:
        *p++ = '"';
        p = escape(p, arg.bytes);
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
