// Perfetto's native format: the few protobuf messages that a timeline needs, encoded by hand.
// For `export --to perfetto`. Field numbers are those of perfetto/trace/trace_packet.proto and
// the files that it names.
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>

#include "reader/export/export.hpp"
#include "reader/export/shown_args.hpp"
#include "reader/export/span_forest.hpp"

namespace dft::reader {
namespace {

namespace field {
constexpr unsigned kPacket = 1;  // of Trace
// TracePacket
constexpr unsigned kTimestamp = 8;
constexpr unsigned kSequence = 10;
constexpr unsigned kTrackEvent = 11;
constexpr unsigned kTrackDescriptor = 60;
// TrackDescriptor
constexpr unsigned kUuid = 1;
constexpr unsigned kTrackName = 2;
constexpr unsigned kProcess = 3;
constexpr unsigned kThread = 4;
constexpr unsigned kParent = 5;
constexpr unsigned kCounter = 8;
constexpr unsigned kOrderOfChildren = 11;
constexpr unsigned kPlace = 12;  // among its siblings
// ProcessDescriptor, ThreadDescriptor
constexpr unsigned kPid = 1;
constexpr unsigned kPlaceOfOld = 3;  // legacy_sort_index, of both
constexpr unsigned kProcessName = 6;
constexpr unsigned kTid = 2;
constexpr unsigned kThreadName = 5;
// TrackEvent
constexpr unsigned kAnnotation = 4;
constexpr unsigned kType = 9;
constexpr unsigned kTrackUuid = 11;
constexpr unsigned kCategory = 22;
constexpr unsigned kName = 23;
constexpr unsigned kDoubleValue = 44;
// DebugAnnotation
constexpr unsigned kBool = 2;
constexpr unsigned kUint = 3;
constexpr unsigned kInt = 4;
constexpr unsigned kDouble = 5;
constexpr unsigned kString = 6;
constexpr unsigned kJson = 9;
constexpr unsigned kAnnotationName = 10;
// Our own, and never written: the hash as it stands in the trace, until its text is known.
constexpr unsigned kHash = 1000;
}  // namespace field

constexpr std::uint64_t kByPlace = 3;  // ChildTracksOrdering: EXPLICIT

enum EventType : std::uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterValue = 4 };

// A message under construction: fields are appended.
class Message {
 public:
  void number(unsigned id, std::uint64_t value) {
    varint(id << 3);
    varint(value);
  }
  void real(unsigned id, double value) {
    varint((id << 3) | 1);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    text.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  void bytes(unsigned id, std::string_view value) {
    varint((id << 3) | 2);
    varint(value.size());
    text += value;
  }
  std::string text;

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      text += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    text += static_cast<char>(value);
  }
};

double real_of(const JsonField& value) {
  const std::string digits(value.value);
  return std::strtod(digits.c_str(), nullptr);
}

// The arguments as annotations; of a counter, the series as they are.
void encode(const Event& event, std::string& out) {
  Message all;
  std::string scratch;
  std::string key_scratch;
  for (const JsonField& argument : event.args) {
    Message one;
    const std::string_view key =
        plain_text(argument.key, argument.key_escaped, event.valid_utf8, key_scratch);
    if (may_be_hash(key)) {
      one.bytes(field::kHash, argument.value);
      const std::string_view renamed = shown_key(argument.key, event.args);
      if (renamed != argument.key) one.bytes(field::kHash, renamed);
    }
    one.bytes(field::kAnnotationName, key);
    switch (argument.kind) {
      case JsonKind::kInt:
        one.number(field::kInt, static_cast<std::uint64_t>(argument.number));
        break;
      case JsonKind::kNumber:
        // A hash has all bits of 64, which a double would round.
        if (std::uint64_t whole = 0; unsigned_of(argument, whole)) {
          one.number(field::kUint, whole);
        } else if (argument.is_whole() && event.phase != 'C') {
          one.bytes(field::kString, argument.value);
        } else {
          one.real(field::kDouble, real_of(argument));
        }
        break;
      case JsonKind::kTrue:
      case JsonKind::kFalse:
        one.number(field::kBool, argument.kind == JsonKind::kTrue ? 1 : 0);
        break;
      case JsonKind::kString:
      case JsonKind::kEscaped:
        one.bytes(field::kString, plain_text(argument.value, argument.kind == JsonKind::kEscaped,
                                             event.valid_utf8, scratch));
        break;
      default: {
        // Perfetto aborts on a null, and leaves one inside of a list or an object out.
        const bool has_null = argument.value.find("null") != std::string_view::npos;
        one.bytes(has_null ? field::kString : field::kJson,
                  plain_text(argument.value, false, event.valid_utf8, scratch));
        break;
      }
    }
    all.bytes(field::kAnnotation, one.text);
  }
  if (event.phase != 'X' && event.phase != 'i' && event.phase != 'C' && event.phase != kNoPhase) {
    Message one;
    one.bytes(field::kAnnotationName, "ph");
    one.bytes(field::kString, {&event.phase, 1});
    all.bytes(field::kAnnotation, one.text);
  }
  out += all.text;
}

std::uint64_t varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !text.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

bool take(std::string_view& text, std::string_view& inner) {
  (void)varint(text);
  const std::uint64_t size = varint(text);
  if (size > text.size()) return false;
  inner = text.substr(0, size);
  text.remove_prefix(size);
  return true;
}

bool read_series(std::string_view text, std::string& name, double& value) {
  bool numeric = false;
  while (!text.empty()) {
    const std::uint64_t tag = varint(text);
    const auto id = static_cast<unsigned>(tag >> 3);
    if ((tag & 7) == 2) {
      const std::uint64_t size = varint(text);
      if (size > text.size()) return false;
      if (id == field::kAnnotationName) name = text.substr(0, size);
      text.remove_prefix(size);
    } else if ((tag & 7) == 1) {
      if (text.size() < 8) return false;
      std::uint64_t bits;
      std::memcpy(&bits, text.data(), 8);
      value = std::bit_cast<double>(bits);
      numeric = true;
      text.remove_prefix(8);
    } else {
      const std::uint64_t whole = varint(text);
      value = id == field::kUint ? static_cast<double>(whole)
                                 : static_cast<double>(static_cast<std::int64_t>(whole));
      numeric = id == field::kInt || id == field::kUint;
    }
  }
  return numeric;
}

// An annotation with the text of its hash, or as it was where the trace has none for it.
void append_annotation(std::string& out, std::string_view annotation, const SpanForest& forest) {
  constexpr std::uint64_t kTag = (std::uint64_t{field::kHash} << 3) | 2;
  std::string_view rest = annotation;
  std::string_view hash;
  std::string_view key;
  std::string_view peek = rest;
  if (varint(peek) == kTag) {
    (void)take(rest, hash);
    peek = rest;
    if (varint(peek) == kTag) (void)take(rest, key);
    if (key.empty()) {
      peek = rest;
      (void)take(peek, key);
    }
  }
  Message all;
  const std::string* text = hash.empty() ? nullptr : forest.text_of(hash);
  if (text == nullptr) {
    all.bytes(field::kAnnotation, rest);
  } else {
    Message one;
    one.bytes(field::kAnnotationName, key);
    one.bytes(field::kString, *text);
    all.bytes(field::kAnnotation, one.text);
  }
  out += all.text;
}

class PerfettoWriter {
 public:
  PerfettoWriter(const SpanForest& forest, OutFile& file) : forest_(forest), file_(file) {}

  std::uint64_t run() {
    describe_processes();
    std::uint64_t events = 0;
    const auto& order = forest_.order;
    for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
      const std::uint32_t track = forest_.items[order[from]].track;
      for (to = from; to < order.size() && forest_.items[order[to]].track == track; ++to) {
      }
      write_track(from, to, track);
      events += to - from;
    }
    flush(true);
    return events;
  }

 private:
  static std::uint64_t process_uuid(std::uint32_t process) { return 1 + std::uint64_t{process}; }
  std::uint64_t fresh_uuid() { return next_uuid_++; }

  void packet(const Message& body) {
    Message whole;
    whole.bytes(field::kPacket, body.text);
    buffer_ += whole.text;
    flush(false);
  }
  void flush(bool all) {
    if (!all && buffer_.size() < (1 << 20)) return;
    file_.write(buffer_);
    buffer_.clear();
  }
  void describe(const Message& descriptor) {
    Message body;
    body.number(field::kSequence, 1);
    body.bytes(field::kTrackDescriptor, descriptor.text);
    packet(body);
  }

  void describe_processes() {
    next_uuid_ = forest_.processes.size() + 2;
    for (const std::uint32_t i : forest_.rows) {
      const ForestProcess& process = forest_.processes[i];
      Message inner;
      inner.number(field::kPid, static_cast<std::uint64_t>(process.shown));
      inner.number(field::kPlaceOfOld, process.place);
      inner.bytes(field::kProcessName, process.label);
      Message descriptor;
      descriptor.number(field::kUuid, process_uuid(i));
      descriptor.bytes(field::kProcess, inner.text);
      descriptor.number(field::kOrderOfChildren, kByPlace);
      descriptor.number(field::kPlace, process.place);
      describe(descriptor);
    }
  }

  // A row beside the threads' for spans that cross others: lanes have numbers above the kernel's.
  std::uint64_t describe_track(std::uint32_t number) {
    const Track& track = forest_.tracks[number];
    const std::uint64_t uuid = fresh_uuid();
    Message descriptor;
    descriptor.number(field::kUuid, uuid);
    descriptor.number(field::kParent, process_uuid(track.process));
    descriptor.number(field::kPlace, number);
    const ForestProcess& process = forest_.processes[track.process];
    if (track.shown >= (1 << 22) && track.shown != process.shown) {
      descriptor.bytes(field::kTrackName, track.label);
    } else {
      Message inner;
      inner.number(field::kPid, static_cast<std::uint64_t>(process.shown));
      inner.number(field::kTid, static_cast<std::uint64_t>(track.shown));
      inner.number(field::kPlaceOfOld, number);
      inner.bytes(field::kThreadName, track.label);
      descriptor.bytes(field::kThread, inner.text);
    }
    describe(descriptor);
    return uuid;
  }

  void event(EventType type, std::uint64_t uuid, std::int64_t at, const Item* item) {
    Message body;
    body.number(field::kType, type);
    body.number(field::kTrackUuid, uuid);
    if (item != nullptr) {
      const SpanName& word = forest_.words[item->name];
      if (!word.category.empty()) body.bytes(field::kCategory, word.category);
      body.bytes(field::kName, word.name);
      std::string_view rest(forest_.payloads.data() + item->payload, item->payload_size);
      std::string_view annotation;
      while (!rest.empty() && take(rest, annotation)) {
        append_annotation(body.text, annotation, forest_);
      }
    }
    Message whole;
    whole.number(field::kTimestamp, static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)));
    whole.number(field::kSequence, 1);
    whole.bytes(field::kTrackEvent, body.text);
    packet(whole);
  }

  // Each numeric argument of a counter is a series, with a track of its own.
  void counter(const Item& item, std::uint32_t track, std::uint64_t uuid) {
    std::string_view rest(forest_.payloads.data() + item.payload, item.payload_size);
    const std::string& name = forest_.words[item.name].name;
    bool some = false;
    while (!rest.empty()) {
      std::string_view annotation;
      if (!take(rest, annotation)) break;
      std::string series;
      double value = 0;
      if (!read_series(annotation, series, value)) continue;
      std::string label = name;
      if (series != "value" && series != name) label.append(" ").append(series);
      const auto key = std::make_pair(forest_.tracks[track].process, label);
      auto found = counters_.find(key);
      if (found == counters_.end()) {
        const std::uint64_t own = fresh_uuid();
        Message descriptor;
        descriptor.number(field::kUuid, own);
        descriptor.number(field::kParent, process_uuid(key.first));
        descriptor.bytes(field::kTrackName, label);
        descriptor.bytes(field::kCounter, {});
        describe(descriptor);
        found = counters_.emplace(key, own).first;
      }
      Message body;
      body.number(field::kType, kCounterValue);
      body.number(field::kTrackUuid, found->second);
      body.real(field::kDoubleValue, value);
      // Marks the first of an event's series, so that events can be counted.
      if (!some) body.bytes(field::kCategory, "event");
      Message whole;
      whole.number(field::kTimestamp,
                   static_cast<std::uint64_t>(std::max<std::int64_t>(item.ts, 0)));
      whole.number(field::kSequence, 1);
      whole.bytes(field::kTrackEvent, body.text);
      packet(whole);
      some = true;
    }
    if (!some) event(kInstant, uuid, item.ts, &item);
  }

  // The spans nest, so that a stack of those that are open says when each ends.
  void write_track(std::size_t from, std::size_t to, std::uint32_t track) {
    const std::uint64_t uuid = describe_track(track);
    std::vector<std::int64_t> ends;
    const auto close = [&](std::int64_t until) {
      for (; !ends.empty() && ends.back() <= until; ends.pop_back()) {
        event(kEnd, uuid, ends.back(), nullptr);
      }
    };
    for (std::size_t i = from; i < to; ++i) {
      const Item& item = forest_.items[forest_.order[i]];
      close(item.ts);
      if (item.phase == 'C') {
        counter(item, track, uuid);
      } else if (item.is_span()) {
        event(kBegin, uuid, item.ts, &item);
        ends.push_back(item.end());
      } else {
        event(kInstant, uuid, item.ts, &item);
      }
    }
    close(INT64_MAX);
  }

  const SpanForest& forest_;
  OutFile& file_;
  std::string buffer_;
  std::uint64_t next_uuid_ = 1;
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counters_;
};

}  // namespace

Exported export_perfetto(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                         Control* control) {
  SpanForest forest;
  forest.read(paths, threads, encode, control);
  forest.arrange();
  Exported done;
  done.events = done.records = PerfettoWriter(forest, out).run();
  done.bytes = out.size();
  done.scan_result = std::move(forest.scan_result);
  out.commit();
  return done;
}

}  // namespace dft::reader
