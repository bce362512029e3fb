// Perfetto's native format: the few messages of its protobuf that a timeline needs, written by
// hand. Field numbers are those of perfetto/trace/trace_packet.proto and the files that it names.
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "reader/export.hpp"
#include "reader/out_file.hpp"
#include "reader/timeline.hpp"

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
// ProcessDescriptor, ThreadDescriptor
constexpr unsigned kPid = 1;
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
constexpr unsigned kInt = 4;
constexpr unsigned kDouble = 5;
constexpr unsigned kString = 6;
constexpr unsigned kJson = 9;
constexpr unsigned kAnnotationName = 10;
}  // namespace field

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

double real_of(const Field& value) {
  const std::string digits(value.value);
  return std::strtod(digits.c_str(), nullptr);
}

// The arguments as annotations; of a counter, the series as they are.
void encode(const Event& event, std::string& out) {
  Message all;
  std::string scratch;
  std::string key_scratch;
  for (const Field& argument : event.args) {
    Message one;
    const std::string_view key =
        plain_text(argument.key, argument.key_escaped, event.valid_utf8, key_scratch);
    one.bytes(field::kAnnotationName, key);
    switch (argument.kind) {
      case Kind::kInt:
        one.number(field::kInt, static_cast<std::uint64_t>(argument.number));
        break;
      case Kind::kNumber:
        one.real(field::kDouble, real_of(argument));
        break;
      case Kind::kTrue:
      case Kind::kFalse:
        one.number(field::kBool, argument.kind == Kind::kTrue ? 1 : 0);
        break;
      case Kind::kString:
      case Kind::kEscaped:
        one.bytes(field::kString, plain_text(argument.value, argument.kind == Kind::kEscaped,
                                             event.valid_utf8, scratch));
        break;
      default:
        one.bytes(field::kJson, plain_text(argument.value, false, event.valid_utf8, scratch));
        break;
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

class Writer {
 public:
  Writer(Timeline& timeline, OutFile& file) : timeline_(timeline), file_(file) {}

  std::uint64_t run() {
    describe_processes();
    std::uint64_t events = 0;
    auto& items = timeline_.items;
    for (std::size_t at = 0; at < items.size();) {
      std::size_t end = at;
      const std::uint32_t track = items[at].track;
      while (end < items.size() && items[end].track == track) ++end;
      std::vector<const Item*> lane;
      for (std::size_t i = at; i < end; ++i) lane.push_back(&items[i]);
      const std::uint64_t parent = process_uuid(timeline_.tracks[track].process);
      std::uint64_t uuid = describe_thread(track);
      for (int number = 1; !lane.empty(); ++number) {
        events += lane.size();
        lane = write_lane(lane, uuid, track);
        events -= lane.size();
        if (!lane.empty()) uuid = describe_lane(parent, thread_label(track), number);
      }
      at = end;
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

  // Perfetto knows a process by its number: those of another host, or of a reused number, get one
  // that no kernel gives, and keep the real one in their name.
  void describe_processes() {
    std::set<std::int64_t> taken;
    std::int64_t free = std::int64_t{1} << 22;
    for (std::size_t i = 0; i < timeline_.processes.size(); ++i) {
      const TimelineProcess& process = timeline_.processes[i];
      std::int64_t shown = process.pid;
      if (shown < 0 || shown > INT32_MAX || !taken.insert(shown).second) {
        while (!taken.insert(free).second) ++free;
        shown = free;
      }
      pids_.push_back(shown);
      std::string name = process.name;
      if (name.empty()) name = process.rank.empty() ? "process" : "rank " + process.rank;
      if (shown != process.pid) name += " (pid " + std::to_string(process.pid) + ")";
      Message inner;
      inner.number(field::kPid, static_cast<std::uint64_t>(shown));
      inner.bytes(field::kProcessName, name);
      Message descriptor;
      descriptor.number(field::kUuid, process_uuid(static_cast<std::uint32_t>(i)));
      descriptor.bytes(field::kProcess, inner.text);
      describe(descriptor);
    }
    next_uuid_ = timeline_.processes.size() + 2;
  }

  std::string thread_label(std::uint32_t track) const {
    const Track& thread = timeline_.tracks[track];
    return thread.name.empty() ? "thread " + std::to_string(thread.tid) : thread.name;
  }

  std::uint64_t describe_thread(std::uint32_t track) {
    const Track& thread = timeline_.tracks[track];
    // Above the kernel's numbers stand the lanes of spans that cross others.
    if (thread.tid < 0 || thread.tid >= (1 << 22)) {
      return describe_lane(process_uuid(thread.process), thread_label(track), 0);
    }
    const std::uint64_t uuid = fresh_uuid();
    Message inner;
    inner.number(field::kPid, static_cast<std::uint64_t>(pids_[thread.process]));
    inner.number(field::kTid, static_cast<std::uint64_t>(thread.tid));
    inner.bytes(field::kThreadName, thread_label(track));
    Message descriptor;
    descriptor.number(field::kUuid, uuid);
    descriptor.number(field::kParent, process_uuid(thread.process));
    descriptor.bytes(field::kThread, inner.text);
    describe(descriptor);
    return uuid;
  }

  std::uint64_t describe_lane(std::uint64_t parent, const std::string& label, int number) {
    const std::uint64_t uuid = fresh_uuid();
    Message descriptor;
    descriptor.number(field::kUuid, uuid);
    descriptor.number(field::kParent, parent);
    descriptor.bytes(field::kTrackName,
                     number == 0 ? label : label + " crossing " + std::to_string(number));
    describe(descriptor);
    return uuid;
  }

  void event(EventType type, std::uint64_t uuid, std::int64_t at, const Item* item) {
    Message body;
    body.number(field::kType, type);
    body.number(field::kTrackUuid, uuid);
    if (item != nullptr) {
      const Word& word = timeline_.words[item->name];
      if (!word.category.empty()) body.bytes(field::kCategory, word.category);
      body.bytes(field::kName, word.name);
      body.text.append(timeline_.payloads, item->payload, item->payload_size);
    }
    Message whole;
    whole.number(field::kTimestamp, static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)));
    whole.number(field::kSequence, 1);
    whole.bytes(field::kTrackEvent, body.text);
    packet(whole);
  }

  // Each numeric argument of a counter is a series, with a track of its own.
  void counter(const Item& item, std::uint32_t track) {
    std::string_view rest(timeline_.payloads.data() + item.payload, item.payload_size);
    const std::string& name = timeline_.words[item.name].name;
    bool some = false;
    while (!rest.empty()) {
      std::string_view annotation;
      if (!take(rest, annotation)) break;
      std::string series;
      double value = 0;
      if (!read_series(annotation, series, value)) continue;
      std::string label = name;
      if (series != "value" && series != name) label.append(" ").append(series);
      const auto key = std::make_pair(timeline_.tracks[track].process, label);
      auto found = counters_.find(key);
      if (found == counters_.end()) {
        const std::uint64_t uuid = fresh_uuid();
        Message descriptor;
        descriptor.number(field::kUuid, uuid);
        descriptor.number(field::kParent, process_uuid(key.first));
        descriptor.bytes(field::kTrackName, label);
        descriptor.bytes(field::kCounter, {});
        describe(descriptor);
        found = counters_.emplace(key, uuid).first;
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
    if (!some) event(kInstant, uuid_of_lane_, item.ts, &item);
  }

  static std::uint64_t varint(std::string_view& text) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !text.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(text.front());
      text.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  static bool take(std::string_view& text, std::string_view& inner) {
    (void)varint(text);
    const std::uint64_t size = varint(text);
    if (size > text.size()) return false;
    inner = text.substr(0, size);
    text.remove_prefix(size);
    return true;
  }
  static bool read_series(std::string_view text, std::string& name, double& value) {
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
        value = static_cast<double>(static_cast<std::int64_t>(varint(text)));
        numeric = id == field::kInt;
      }
    }
    return numeric;
  }

  std::vector<const Item*> write_lane(const std::vector<const Item*>& items, std::uint64_t uuid,
                                      std::uint32_t track) {
    std::vector<const Item*> crossing;
    std::vector<const Item*> open;
    uuid_of_lane_ = uuid;
    const auto end_of = [](const Item* item) { return item->ts + item->dur; };
    for (const Item* item : items) {
      while (!open.empty() && end_of(open.back()) <= item->ts) {
        event(kEnd, uuid, end_of(open.back()), nullptr);
        open.pop_back();
      }
      if (item->phase == 'C') {
        counter(*item, track);
      } else if (item->phase != 'X') {
        event(kInstant, uuid, item->ts, item);
      } else if (!open.empty() && end_of(item) > end_of(open.back())) {
        crossing.push_back(item);
      } else {
        event(kBegin, uuid, item->ts, item);
        open.push_back(item);
      }
    }
    for (; !open.empty(); open.pop_back()) event(kEnd, uuid, end_of(open.back()), nullptr);
    return crossing;
  }

  Timeline& timeline_;
  OutFile& file_;
  std::string buffer_;
  std::vector<std::int64_t> pids_;
  std::uint64_t next_uuid_ = 1;
  std::uint64_t uuid_of_lane_ = 0;
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counters_;
};

}  // namespace

Exported export_perfetto(const std::vector<std::string>& paths, const std::string& out,
                         unsigned threads, Control* control) {
  OutFile file(out);
  Timeline timeline;
  timeline.read(paths, threads, encode, control);
  timeline.sort();
  Exported done;
  done.events = done.records = Writer(timeline, file).run();
  done.bytes = file.size();
  done.outcome = std::move(timeline.outcome);
  file.commit();
  return done;
}

}  // namespace dft::reader
