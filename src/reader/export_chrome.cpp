// Strict Chrome JSON.
#include <charconv>

#include "reader/export.hpp"
#include "reader/out_file.hpp"

namespace dft::reader {
namespace {

void append_number(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

// Microseconds, with what is below them behind a point.
void append_time(std::string& out, std::int64_t ns) {
  if (ns < 0) {
    out += '-';
    ns = -ns;
  }
  append_number(out, ns / 1000);
  const auto rest = static_cast<int>(ns % 1000);
  if (rest == 0) return;
  out += '.';
  out += static_cast<char>('0' + rest / 100);
  out += static_cast<char>('0' + rest / 10 % 10);
  out += static_cast<char>('0' + rest % 10);
}

void append_event(std::string& out, const Event& event) {
  const auto text = [&](const char* key, const Text& value) {
    out += key;
    out += value.raw;
    out += '"';
  };
  text("{\"name\":\"", event.name);
  text(",\"cat\":\"", event.category);
  if (event.phase != kNoPhase) {
    out += ",\"ph\":\"";
    // An aggregate has no phase of Chrome's.
    out += event.phase == kAggregate ? 'i' : event.phase;
    out += '"';
  }
  const auto number = [&](EventHas flag, const char* key, std::int64_t value) {
    if ((event.has & flag) == 0) return;
    out += key;
    append_number(out, value);
  };
  number(kHasPid, ",\"pid\":", event.pid);
  number(kHasTid, ",\"tid\":", event.tid);
  number(kHasId, ",\"id\":", event.id);
  if ((event.has & kHasTs) != 0) {
    out += ",\"ts\":";
    append_time(out, event.ts);
  }
  if ((event.has & kHasDur) != 0) {
    out += ",\"dur\":";
    append_time(out, event.dur);
  }
  if (!event.args_text.empty()) {
    out += ",\"args\":";
    // A document's arguments may span lines; a record a line is easier to look at.
    for (const char c : event.args_text) {
      if (c != '\n' && c != '\r') out += c;
    }
  }
  for (const Field& field : event.extra) {
    out += ",\"";
    out += field.key;
    out += "\":";
    if (field.is_string()) out += '"';
    out += field.value;
    if (field.is_string()) out += '"';
  }
  out += '}';
}

struct Chunk {
  std::string text;
  std::uint64_t events = 0;
  std::uint64_t records = 0;
};

}  // namespace

Exported export_chrome(const std::vector<std::string>& paths, const std::string& out,
                       unsigned threads, Control* control) {
  OutFile file(out);
  Exported done;
  OrderedScan<Chunk> scan(
      paths, threads,
      [](unsigned, Block& block) {
        Chunk chunk;
        block.records([&](const Event& event, std::uint64_t) {
          if (chunk.records++ != 0) chunk.text += ",\n";
          const std::size_t before = chunk.text.size();
          append_event(chunk.text, event);
          if (!event.valid_utf8) {
            std::string mended;
            append_mended(mended, std::string_view(chunk.text).substr(before));
            chunk.text.resize(before);
            chunk.text += mended;
          }
          if (event.is_event()) ++chunk.events;
        });
        return chunk;
      },
      control);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  while (auto chunk = scan.next()) {
    if (chunk->records == 0) continue;
    if (done.records != 0) file.write(",\n");
    file.write(chunk->text);
    done.records += chunk->records;
    done.events += chunk->events;
  }
  file.write("\n]}\n");
  done.bytes = file.size();
  done.outcome = scan.outcome();
  file.commit();
  return done;
}

}  // namespace dft::reader
