// Strict Chrome JSON: for `export --to chrome`, and the stream of `view`. Readers of it know a
// process by its number alone, drop spans that cross, and read times as doubles.
#include <charconv>

#include "reader/export/export.hpp"
#include "reader/export/shown_args.hpp"
#include "reader/export/span_forest.hpp"

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

void append_string(std::string& out, const char* key, std::string_view text) {
  out += key;
  append_escaped(out, text);
  out += '"';
}

// A value as it is written; one that spans lines, in one: a record a line is easier to look at.
void append_value(std::string& out, const JsonField& field) {
  if (field.is_string()) {
    out += '"';
    out += field.value;
    out += '"';
    return;
  }
  for (const char c : field.value) {
    if (c != '\n' && c != '\r') out += c;
  }
}

struct Chunk {
  std::string text;
  std::uint64_t events = 0;
  std::uint64_t records = 0;
  std::uint64_t seen = 0;
};

class ChromeWriter {
 public:
  ChromeWriter(const SpanForest& forest, const View& view) : forest_(forest), view_(view) {
    // A double holds microseconds of the epoch to a quarter: what is finer has to count from a time
    // nearby, as torch.profiler's does.
    constexpr std::int64_t kSecond = 1000000000;
    if (forest.has_parts) base_ = forest.first / kSecond * kSecond;
    if (view.begin) begin_ = forest.first + *view.begin;
    if (view.end) end_ = forest.first + *view.end;
  }

  [[nodiscard]] std::string opening() const {
    std::string out = "{\"displayTimeUnit\":\"ms\",";
    if (base_ != 0) {
      out += "\"baseTimeNanoseconds\":";
      append_number(out, base_);
      out += ',';
    }
    return out + "\"traceEvents\":[\n";
  }

  // Names and places of all rows, in their order: viewers that know no places keep it.
  [[nodiscard]] Chunk names() const {
    Chunk chunk;
    const auto record = [&](const char* name, std::int64_t pid, std::int64_t tid) {
      chunk.text += chunk.records++ == 0 ? "{\"name\":\"" : ",\n{\"name\":\"";
      chunk.text += name;
      chunk.text += "\",\"cat\":\"dftracer\",\"ph\":\"M\",\"pid\":";
      append_number(chunk.text, pid);
      chunk.text += ",\"tid\":";
      append_number(chunk.text, tid);
    };
    const auto place = [&](std::int64_t at) {
      chunk.text += ",\"args\":{\"sort_index\":";
      append_number(chunk.text, at);
      chunk.text += "}}";
    };
    for (const std::uint32_t i : forest_.rows) {
      const ForestProcess& process = forest_.processes[i];
      if (!is_wanted(process)) continue;
      record("process_name", process.shown, process.shown);
      append_string(chunk.text, ",\"args\":{\"name\":\"", process.label);
      chunk.text += "}}";
      if (process.sorted) continue;  // its own place is among the records
      record("process_sort_index", process.shown, process.shown);
      place(process.place);
    }
    for (std::size_t i = 0; i < forest_.tracks.size(); ++i) {
      const Track& track = forest_.tracks[i];
      const ForestProcess& process = forest_.processes[track.process];
      if (!is_wanted(process)) continue;
      record("thread_name", process.shown, track.shown);
      append_string(chunk.text, ",\"args\":{\"name\":\"", track.label);
      chunk.text += "}}";
      if (process.sorted) continue;
      record("thread_sort_index", process.shown, track.shown);
      place(track.tid == process.pid && track.lane == 0 ? -1 : static_cast<std::int64_t>(i));
    }
    return chunk;
  }

  Chunk records(Block& block) const {
    Chunk chunk;
    block.records([&](const Event& event, std::uint64_t) {
      const Item* item = forest_.find(block, chunk.seen++);
      if (item == nullptr || !is_wanted(event, *item)) return;
      if (chunk.records++ != 0) chunk.text += ",\n";
      const std::size_t before = chunk.text.size();
      append_event(chunk.text, event, *item);
      if (!event.valid_utf8) {
        std::string mended;
        append_mended(mended, std::string_view(chunk.text).substr(before));
        chunk.text.resize(before);
        chunk.text += mended;
      }
      if (event.is_event()) ++chunk.events;
    });
    return chunk;
  }

 private:
  [[nodiscard]] bool is_wanted(const ForestProcess& process) const {
    return view_.pids.empty() || view_.pids.contains(process.pid);
  }

  [[nodiscard]] bool is_wanted(const Event& event, const Item& item) const {
    if (!is_wanted(forest_.processes[forest_.tracks[item.track].process])) return false;
    if (event.is_metadata()) return !view_.on || !(event.is_own() || is_name(event));
    if (!item.timed) return true;
    if (end_ && item.ts > *end_) return false;
    return !begin_ || item.ts >= *begin_ || item.end() >= *begin_;
  }

  static bool is_name(const Event& event) {
    return is(event.name.raw, "process_name") || is(event.name.raw, "thread_name");
  }

  // Links between spans have numbers that are those of their file alone.
  static std::int64_t id_of(const Event& event, std::uint32_t file) {
    constexpr std::string_view kLinks = "stfbneSTpFNOD";
    if (file == 0 || kLinks.find(event.phase) == std::string_view::npos) return event.id;
    return event.id + (std::int64_t{file} << 40);
  }

  void append_event(std::string& out, const Event& event, const Item& item) const {
    const Track& track = forest_.tracks[item.track];
    const ForestProcess& process = forest_.processes[track.process];
    const auto text = [&](const char* key, const JsonText& value) {
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
    const auto number = [&](bool there, const char* key, std::int64_t value) {
      if (!there) return;
      out += key;
      append_number(out, value);
    };
    const auto has = [&](EventHas flag) { return (event.has & flag) != 0; };
    number(has(kHasPid) || process.shown != 0, ",\"pid\":", process.shown);
    number(has(kHasTid) || track.shown != 0, ",\"tid\":", track.shown);
    number(has(kHasId), ",\"id\":", id_of(event, process.file));
    if (has(kHasTs)) {
      out += ",\"ts\":";
      append_time(out, item.ts - base_);
    }
    if (has(kHasDur)) {
      out += ",\"dur\":";
      append_time(out, item.dur);
    }
    if (event.is_metadata() && is_name(event)) {
      const bool of_process = is(event.name.raw, "process_name");
      append_string(out, ",\"args\":{\"name\":\"", of_process ? process.label : track.label);
      out += '}';
    } else if (!event.args_text.empty()) {
      append_args(out, event);
    }
    for (const JsonField& field : event.extra) {
      if (!process.alias.empty() && is(field.key, "pid")) continue;
      if (!track.alias.empty() && is(field.key, "tid")) continue;
      out += ",\"";
      out += field.key;
      out += "\":";
      append_value(out, field);
    }
    out += '}';
  }

  void append_args(std::string& out, const Event& event) const {
    out += ",\"args\":{";
    const bool defines = event.is_metadata() && event.is_own();
    bool first = true;
    for (const JsonField& field : event.args) {
      const std::string* text = nullptr;
      if (!defines && may_be_hash(field.key)) text = forest_.text_of(field.value);
      out += first ? "\"" : ",\"";
      first = false;
      out += text == nullptr ? field.key : shown_key(field.key, event.args);
      if (text == nullptr) {
        out += "\":";
        append_value(out, field);
      } else {
        append_string(out, "\":\"", *text);
      }
    }
    out += '}';
  }

  const SpanForest& forest_;
  const View& view_;
  std::int64_t base_ = 0;
  std::optional<std::int64_t> begin_;
  std::optional<std::int64_t> end_;
};

}  // namespace

Exported export_chrome(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                       Control* control, const View& view) {
  // A record that a viewer can take is no smaller than this.
  constexpr std::uint64_t kRecord = 100;
  Exported done;
  SpanForest forest;
  const auto give_up = [&] {
    done.too_large = true;
    return std::move(done);
  };
  try {
    forest.read(paths, threads, [](const Event&, std::string&) {}, control, view.limit / kRecord);
  } catch (const TooLarge&) {
    return give_up();
  }
  forest.arrange();
  if (view.on) forest.spread();
  for (const ForestProcess& process : forest.processes) done.pids.insert(process.pid);
  const ChromeWriter writer(forest, view);
  out.write(writer.opening());
  const Chunk names = writer.names();
  out.write(names.text);
  done.added = names.records;
  OrderedScan<Chunk> scan(
      paths, threads, [&writer](unsigned, Block& block) { return writer.records(block); }, control);
  while (auto chunk = scan.next()) {
    if (chunk->records == 0) continue;
    if (done.records + done.added != 0) out.write(",\n");
    out.write(chunk->text);
    done.records += chunk->records;
    done.events += chunk->events;
    if (view.limit != 0 && out.size() > view.limit) return give_up();
  }
  out.write("\n]}\n");
  done.bytes = out.size();
  done.scan_result = scan.result();
  out.commit();
  return done;
}

}  // namespace dft::reader
