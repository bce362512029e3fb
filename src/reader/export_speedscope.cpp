// speedscope's own format: one profile a thread, its spans as pairs of events.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "reader/export.hpp"
#include "reader/out_file.hpp"
#include "reader/timeline.hpp"

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

std::string profile_name(const Timeline& timeline, const Track& track) {
  const TimelineProcess& process = timeline.processes[track.process];
  std::string name = process.name.empty() ? "" : process.name + ", ";
  name += "pid " + std::to_string(process.pid) + ", thread " +
          (track.name.empty() ? std::to_string(track.tid) : track.name);
  return name;
}

// The spans of one lane, which nest. Spans that do not fit go to the next lane.
std::vector<Item> write_lane(const Timeline& timeline, const std::vector<Item>& items,
                             const std::string& name, OutFile& file, bool& first) {
  std::vector<Item> crossing;
  std::vector<Item> open;
  std::string out = first ? "\n{" : ",\n{";
  first = false;
  std::int64_t last = 0;
  for (const Item& item : items) last = std::max(last, item.ts + item.dur - timeline.first);
  out += "\"type\":\"evented\",\"name\":\"";
  append_escaped(out, name);
  out += "\",\"unit\":\"microseconds\",\"startValue\":";
  append_at(out, std::max<std::int64_t>(items.front().ts - timeline.first, 0));
  out += ",\"endValue\":";
  append_at(out, last);
  out += ",\"events\":[";
  bool some = false;
  const auto emit = [&](char type, const Item& item, std::int64_t at) {
    if (some) out += ",\n";
    some = true;
    append_pair(out, type, item.name, std::max<std::int64_t>(at - timeline.first, 0));
    if (out.size() > (1 << 20)) {
      file.write(out);
      out.clear();
    }
  };
  const auto end_of = [](const Item& item) { return item.ts + item.dur; };
  for (const Item& item : items) {
    while (!open.empty() && end_of(open.back()) <= item.ts) {
      emit('C', open.back(), end_of(open.back()));
      open.pop_back();
    }
    if (!open.empty() && end_of(item) > end_of(open.back())) {
      crossing.push_back(item);
      continue;
    }
    emit('O', item, item.ts);
    open.push_back(item);
  }
  while (!open.empty()) {
    emit('C', open.back(), end_of(open.back()));
    open.pop_back();
  }
  out += "]}";
  file.write(out);
  return crossing;
}

}  // namespace

Exported export_speedscope(const std::vector<std::string>& paths, const std::string& out,
                           unsigned threads, Control* control) {
  OutFile file(out);
  Timeline timeline;
  timeline.read(paths, threads, [](const Event&, std::string&) {}, control);
  timeline.sort();
  std::string head =
      "{\"$schema\":\"https://www.speedscope.app/"
      "file-format-schema.json\",\"exporter\":\"dftracer\","
      "\"shared\":{\"frames\":[";
  for (std::size_t i = 0; i < timeline.words.size(); ++i) {
    head += i == 0 ? "{\"name\":\"" : ",{\"name\":\"";
    append_escaped(head, timeline.words[i].name);
    head += "\",\"file\":\"";
    append_escaped(head, timeline.words[i].category);
    head += "\"}";
  }
  file.write(head + "]},\"profiles\":[");
  bool first = true;
  for (std::size_t at = 0; at < timeline.items.size();) {
    std::size_t end = at;
    const std::uint32_t track = timeline.items[at].track;
    while (end < timeline.items.size() && timeline.items[end].track == track) ++end;
    std::vector<Item> lane(timeline.items.begin() + static_cast<std::ptrdiff_t>(at),
                           timeline.items.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string name = profile_name(timeline, timeline.tracks[track]);
    for (int number = 0; !lane.empty(); ++number) {
      const std::string lane_name =
          number == 0 ? name : name + " crossing " + std::to_string(number);
      lane = write_lane(timeline, lane, lane_name, file, first);
    }
    at = end;
  }
  file.write("\n]}\n");
  Exported done;
  done.events = done.records = timeline.items.size();
  done.bytes = file.size();
  done.outcome = std::move(timeline.outcome);
  file.commit();
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
