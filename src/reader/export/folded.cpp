// Folded stacks, one per line with its nanoseconds, from which flame graphs are drawn: the process, the
// regions around an I/O call, the place that made it, and the call.
#include <algorithm>
#include <fstream>
#include <map>

#include "reader/export/call_places.hpp"
#include "reader/export/export.hpp"

namespace dft::reader {
namespace {

bool is_call(const SpanName& name) { return name.category == "POSIX" || name.category == "STDIO"; }

// Semicolons part the frames, and a line is a stack.
void append_frame(std::string& out, std::string_view name) {
  if (!out.empty()) out += ';';
  for (const char c : name) {
    const bool parts = c == ';' || static_cast<unsigned char>(c) < ' ';
    out += parts ? '_' : c;
  }
}

}  // namespace

Exported export_folded(const std::vector<std::string>& paths, OutFile& out, unsigned threads,
                       Control* control) {
  SpanForest forest;
  forest.read(paths, threads, CallPlaces::keep, control);
  forest.arrange();
  const CallPlaces places(forest);
  std::map<std::string, std::uint64_t> stacks;
  std::vector<const Item*> open;
  std::uint32_t track = ~std::uint32_t{0};
  for (const std::uint32_t index : forest.order) {
    const Item& item = forest.items[index];
    if (!item.is_span()) continue;
    if (item.track != track) open.clear();
    track = item.track;
    while (!open.empty() && open.back()->end() <= item.ts) open.pop_back();
    const SpanName& name = forest.words[item.name];
    if (!is_call(name)) {
      open.push_back(&item);
      continue;
    }
    std::string stack;
    append_frame(stack, forest.processes[forest.tracks[track].process].label);
    for (const Item* around : open) append_frame(stack, forest.words[around->name].name);
    const std::uint32_t place = places.of(item);
    if (place != CallPlaces::kNone) append_frame(stack, places.names[place]);
    append_frame(stack, name.name);
    stacks[stack] += static_cast<std::uint64_t>(std::max<std::int64_t>(item.dur, 0));
  }
  Exported done;
  std::string text;
  for (const auto& [stack, time] : stacks) {
    text += stack + ' ' + std::to_string(time) + '\n';
    done.added += time;
  }
  out.write(text);
  done.events = done.records = forest.order.size();
  done.bytes = out.size();
  done.scan_result = std::move(forest.scan_result);
  out.commit();
  return done;
}

std::uint64_t count_folded(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t space = line.rfind(' ');
    if (space != std::string::npos) sum += std::strtoull(line.c_str() + space, nullptr, 10);
  }
  return sum;
}

}  // namespace dft::reader
