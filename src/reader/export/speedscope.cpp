// speedscope's own format: one profile a thread, its spans as pairs of events. An I/O call is in a frame
// of the place that made it: "Left Heavy" then is a flame graph by regions and lines of code.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "reader/export/call_places.hpp"
#include "reader/export/export.hpp"
#include "reader/export/span_forest.hpp"

namespace dft::reader {
namespace {

// Microseconds since the first event; speedscope reads doubles.
void append_at(std::string& out, std::int64_t ns) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<double>(ns) / 1000.0);
  out.append(digits, end.ptr);
}

void append_pair(std::string& out, char type, std::uint32_t frame, std::int64_t at) {
  out += "{\"type\":\"";
  out += type;
  out += "\",\"frame\":";
  out += std::to_string(frame);
  out += ",\"at\":";
  append_at(out, at);
  out += '}';
}

// Not as append_pair() writes them: they are no events, and are not counted as such.
void append_place(std::string& out, char type, std::uint32_t frame, std::int64_t at) {
  out += "{\"frame\":";
  out += std::to_string(frame);
  out += ",\"type\":\"";
  out += type;
  out += "\",\"at\":";
  append_at(out, at);
  out += '}';
}

std::string profile_name(const SpanForest& forest, const Track& track) {
  const ForestProcess& process = forest.processes[track.process];
  std::string name = process.label;
  if (process.shown == process.pid) name += " (pid " + std::to_string(process.pid) + ")";
  return name + ", " + track.label;
}

// The spans of one row, which nest.
void write_profile(const SpanForest& forest, const CallPlaces& places, std::size_t from,
                   std::size_t to, const std::string& name, OutFile& file, bool& first) {
  const auto item_at = [&](std::size_t i) -> const Item& { return forest.items[forest.order[i]]; };
  std::vector<const Item*> open;
  std::string out = first ? "\n{" : ",\n{";
  first = false;
  std::int64_t last = 0;
  for (std::size_t i = from; i < to; ++i) last = std::max(last, item_at(i).end() - forest.first);
  out += "\"type\":\"evented\",\"name\":\"";
  append_escaped(out, name);
  out += "\",\"unit\":\"microseconds\",\"startValue\":";
  append_at(out, std::max<std::int64_t>(item_at(from).ts - forest.first, 0));
  out += ",\"endValue\":";
  append_at(out, last);
  out += ",\"events\":[";
  bool some = false;
  const auto emit = [&](char type, const Item& item, std::int64_t at) {
    if (some) out += ",\n";
    some = true;
    at = std::max<std::int64_t>(at - forest.first, 0);
    const std::uint32_t place = places.of(item);
    const bool placed = place != CallPlaces::kNone;
    const auto frame = static_cast<std::uint32_t>(forest.words.size()) + place;
    if (placed && type == 'O') {
      append_place(out, type, frame, at);
      out += ",\n";
    }
    append_pair(out, type, item.name, at);
    if (placed && type == 'C') {
      out += ",\n";
      append_place(out, type, frame, at);
    }
    if (out.size() > (1 << 20)) {
      file.write(out);
      out.clear();
    }
  };
  const auto close = [&](std::int64_t until) {
    for (; !open.empty() && open.back()->end() <= until; open.pop_back()) {
      emit('C', *open.back(), open.back()->end());
    }
  };
  for (std::size_t i = from; i < to; ++i) {
    const Item& item = item_at(i);
    close(item.ts);
    emit('O', item, item.ts);
    if (item.is_span()) {
      open.push_back(&item);
    } else {
      emit('C', item, item.ts);  // what is no span is one without length
    }
  }
  close(INT64_MAX);
  out += "]}";
  file.write(out);
}

}  // namespace

Exported export_speedscope(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                           Control* control) {
  SpanForest forest;
  forest.read(paths, threads, CallPlaces::keep, control);
  forest.arrange();
  const CallPlaces places(forest);
  std::string head =
      "{\"$schema\":\"https://www.speedscope.app/"
      "file-format-schema.json\",\"exporter\":\"dftracer\","
      "\"shared\":{\"frames\":[";
  for (std::size_t i = 0; i < forest.words.size(); ++i) {
    head += i == 0 ? "{\"name\":\"" : ",{\"name\":\"";
    append_escaped(head, forest.words[i].name);
    head += "\",\"file\":\"";
    append_escaped(head, forest.words[i].category);
    head += "\"}";
  }
  for (const std::string& place : places.names) {
    head += ",{\"name\":\"";  // behind the name of the call that has it
    append_escaped(head, place);
    head += "\"}";
  }
  out.write(head + "]},\"profiles\":[");
  // One after the other, in the order of the processes.
  const auto& order = forest.order;
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    const std::uint32_t track = forest.items[order[from]].track;
    for (to = from; to < order.size() && forest.items[order[to]].track == track; ++to) {
    }
    ranges.emplace_back(from, to);
  }
  const auto track_of = [&](const auto& range) -> const Track& {
    return forest.tracks[forest.items[order[range.first]].track];
  };
  std::stable_sort(ranges.begin(), ranges.end(), [&](const auto& a, const auto& b) {
    return forest.processes[track_of(a).process].place <
           forest.processes[track_of(b).process].place;
  });
  bool first = true;
  for (const auto& range : ranges) {
    const std::string name = profile_name(forest, track_of(range));
    write_profile(forest, places, range.first, range.second, name, out, first);
  }
  out.write("\n]}\n");
  Exported done;
  done.events = done.records = order.size();
  done.bytes = out.size();
  done.scan_result = std::move(forest.scan_result);
  out.commit();
  return done;
}

std::uint64_t count_speedscope(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return 0;
  constexpr std::string_view kOpen = "{\"type\":\"O\"";
  std::uint64_t count = 0;
  std::string text;
  std::string more(1 << 20, '\0');
  for (;;) {
    const std::size_t got = std::fread(more.data(), 1, more.size(), file);
    text.append(more, 0, got);
    std::size_t at = 0;
    for (std::size_t found; (found = text.find(kOpen, at)) != std::string::npos;
         at = found + kOpen.size()) {
      ++count;
    }
    // What may be the beginning of one that goes on.
    text.erase(0, std::max(at, text.size() - std::min(text.size(), kOpen.size() - 1)));
    if (std::feof(file) != 0 || std::ferror(file) != 0) break;
  }
  std::fclose(file);
  return count;
}

}  // namespace dft::reader
