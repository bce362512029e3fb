// Encoder's rare lines: metadata, ends of flows, lanes, lost events and the end record. Called like
// the rest of the encoder (encode.hpp).
#include "format/escape.hpp"
#include "format/hash.hpp"
#include "format/lane_ids.hpp"
#include "sink/arg_walk.hpp"
#include "sink/encode.hpp"
#include "sink/json_write.hpp"

namespace dft::sink {
namespace {

using format::escape;
using format::kEscapeGrowth;
using record::Head;
using record::Kind;

std::string_view metadata_name(Kind kind) {
  switch (kind) {
    case Kind::kMetadata:
      return "CM";
    case Kind::kThread:
      return "thread_name";
    case Kind::kProcess:
      return "PR";
    case Kind::kProcessName:
      return "process_name";
    case Kind::kFile:
      return "FH";
    case Kind::kString:
      return "SH";
    default:
      return {};
  }
}

}  // namespace

// Writes a line up to and including the thread; id 0 takes the next free id.
char* Encoder::own_line(char* p, std::string_view name, std::uint64_t id) noexcept {
  p = put(p, "{\"id\":");
  p = number(p, id != 0 ? id : next_id_.fetch_add(1));
  p = put(p, ",\"name\":\"");
  p = put(p, name);
  p = put(p, "\",\"cat\":\"dftracer\"");
  return put(p, std::string_view(where_, where_size_));
}

// Writes the phase and the first argument, which all of these lines have.
char* Encoder::own_args(char* p, std::string_view phase) noexcept {
  p = put(p, ",\"ph\":\"");
  p = put(p, phase);
  p = put(p, "\",\"args\":{\"hhash\":\"");
  p = put(p, std::string_view(host_, 16));
  *p++ = '"';
  return p;
}

bool Encoder::metadata(const Head& head, const std::byte* args, const std::byte* end,
                       MmapBuffer& out) noexcept {
  if (head.kind == Kind::kFlow) return flow(head, args, end, out);
  ArgCursor fields(args, end);
  ArgView value;
  ArgView key;
  if ((head.flags & record::kInlineName) != 0 && !fields.next(key)) return false;
  if ((head.flags & record::kForeign) != 0 && !foreign_thread(fields, args)) return false;
  if (!fields.next(value)) return false;
  if (!room(out, kFixedPart + names_.text(head.name).size() +
                     (key.bytes.size() + value.bytes.size()) * kEscapeGrowth)) {
    return false;
  }
  const bool hashed = head.kind == Kind::kFile || head.kind == Kind::kString;
  const std::string_view name = metadata_name(head.kind);
  if (name.empty()) return false;
  char* p = own_line(out.end(), name, hashed ? 0 : head.id);
  p = own_args(p, "M");
  p = put(p, ",\"name\":\"");
  if (head.kind == Kind::kMetadata || head.kind == Kind::kProcess) {
    p = (head.flags & record::kInlineName) != 0 ? escape(p, key.bytes)
                                                : put(p, names_.text(head.name));
    p = put(p, "\",\"value\":\"");
    p = escape(p, value.bytes);
  } else {
    p = escape(p, value.bytes);
    p = put(p, "\",\"value\":\"");
    p = hashed ? format::write_hex16(p, head.id) : put(p, name);
  }
  out.set_end(put(p, "\"}}\n"));
  ++lines_;
  ++metadata_lines_;
  if (head.kind == Kind::kFile) ++files_;
  return true;
}

// A span that is an end of a flow: the line of a span, with members after its arguments. Reached from
// here, beside the path of other spans, because it is rare.
bool Encoder::flow(Head head, const std::byte* args, const std::byte* end,
                   MmapBuffer& out) noexcept {
  head.kind = Kind::kSpan;
  record::Arg last{};
  if (static_cast<std::size_t>(end - args) >= sizeof last) {
    std::memcpy(&last, end - sizeof last, sizeof last);
  }
  // Without memory for the flow, the record has none.
  if (last.type != record::ArgType::kFlow) return line(head, args, end, out);
  if (!line(head, args, end - sizeof last, out)) return false;
  if (!room(out, kFixedPart)) {
    --lines_;  // the line is removed, and made again later
    return false;
  }
  out.resize(out.size() - 2);
  char* p = put(out.end(), ",\"bind_id\":\"0x");
  p = format::write_hex16(p, last.word);
  *p++ = '"';
  if ((last.key & record::kFlowIn) != 0) p = put(p, ",\"flow_in\":true");
  if ((last.key & record::kFlowOut) != 0) p = put(p, ",\"flow_out\":true");
  out.set_end(put(p, "}\n"));
  return true;
}

// Removes the thread from the front of a record that came from another tracer.
bool Encoder::foreign_thread(ArgCursor& fields, const std::byte*& args) noexcept {
  ArgView field;
  if (!fields.next(field) || field.head.type != record::ArgType::kUint) return false;
  const std::uint64_t thread = field.head.word;
  if (thread == 0 || thread > ~std::uint32_t{0}) return false;
  args += sizeof(record::Arg);
  set_thread(static_cast<std::uint32_t>(thread));
  return true;
}

// The lane, shown as a thread of its own beside the real one, on which a crossing span fits. No
// record names it: its number says whose it is, and a trace has the lines that DFTracer's has.
std::uint32_t Encoder::own_lane(std::uint64_t start, std::uint64_t end) noexcept {
  const std::size_t count = lane_ends_.size() / sizeof(LaneEnd);
  auto* lanes = reinterpret_cast<LaneEnd*>(lane_ends_.data());
  std::uint32_t number_of_thread = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (lanes[i].thread != thread_) continue;
    ++number_of_thread;
    if (lanes[i].end <= start || number_of_thread == format::kMostCrossing) {
      lanes[i].end = end;
      return thread_ + (number_of_thread << format::kThreadBits);
    }
  }
  ++number_of_thread;
  const LaneEnd fresh{thread_, end};
  lane_ends_.append({reinterpret_cast<const char*>(&fresh), sizeof fresh});
  return thread_ + (number_of_thread << format::kThreadBits);
}

bool Encoder::lost(std::uint64_t events, std::uint64_t at_ns, MmapBuffer& out) noexcept {
  if (!room(out, kFixedPart)) return false;
  set_thread(process_.pid);
  char* p = own_line(out.end(), "lost", 0);
  p = put(p, ",\"ts\":");
  p = number(p, in_units(at_ns));
  p = own_args(p, "i");
  p = put(p, ",\"p_idx\":-1,\"level\":1,\"events\":");
  p = number(p, events);
  out.set_end(put(p, "}}\n"));
  ++lines_;
  return true;
}

bool Encoder::end(const End& what, MmapBuffer& out) noexcept {
  if (!room(out, 2 * kFixedPart)) return false;  // thirteen numbers
  set_thread(process_.pid);
  char* p = own_line(out.end(), "end", 0);
  p = put(p, ",\"ts\":");
  const std::uint64_t seen =
      last_time_ != 0 ? last_time_ : in_units(clock_map_.to_ns(clock_map_.until));
  p = number(p, what.at_ns == 0 ? seen : in_units(what.at_ns));
  p = put(p, ",\"dur\":0");
  p = own_args(p, "X");
  p = put(p, ",\"p_idx\":-1,\"level\":1");
  if (what.details) {
    p = put(p, ",\"num_events\":");
    p = number(p, what.records);
  }
  if (what.lost != 0) {
    p = put(p, ",\"lost\":");
    p = number(p, what.lost);
  }
  if (what.recovered) p = put(p, ",\"recovered\":true");
  if (what.details && what.totals != nullptr) {
    const IoTotals& t = *what.totals;
    p = put(p, ",\"cpu_us\":");
    p = number(p, t.cpu_us);
    if (t.cpu_wait_us >= 0) {
      p = put(p, ",\"cpu_wait_us\":");
      p = number(p, static_cast<std::uint64_t>(t.cpu_wait_us));
    }
    const struct {
      std::string_view key;
      std::uint64_t value;
    } rows[] = {{"calls", t.calls},
                {"filtered", t.filtered},
                {"read_seen", t.read_seen},
                {"read_total", t.read_total},
                {"write_seen", t.write_seen},
                {"write_total", t.write_total},
                {"storage_read", t.storage_read}};
    for (const auto& row : rows) {
      if (!t.counted) break;
      p = put(p, ",\"");
      p = put(p, row.key);
      p = put(p, "\":");
      p = number(p, row.value);
    }
    if (t.ring_requests != 0) {
      p = put(p, ",\"rings\":");
      p = number(p, t.rings);
      p = put(p, ",\"ring_requests\":");
      p = number(p, t.ring_requests);
    }
  }
  out.set_end(put(p, "}}\n"));
  ++lines_;
  return true;
}

}  // namespace dft::sink
