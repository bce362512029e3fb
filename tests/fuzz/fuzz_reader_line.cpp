// Any bytes as a block of a trace: no crash, and the paths of the parser agree on every line.
// What is accepted as JSON is JSON by a strict checker that shares nothing with the reader.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "../unit/support/strict_json.hpp"
#include "reader/arrow/columns.hpp"
#include "reader/input/block.hpp"
#include "reader/stats/stats.hpp"

namespace {

using namespace dft::reader;

void check(bool condition) {
  if (!condition) std::abort();
}

// The line alone, in a buffer of its own, so that a read past it is seen.
void compare_paths(const Event& event, FileClock clock) {
  std::string line(event.line);
  line.append(kPadding, '\0');
  Parser one(clock);
  Parser two(clock);
  Event fast;
  Event general;
  const char* end = two.general(line.data(), general);
  check(end == line.data() + event.line.size());
  const char* stop = one.fast(line.data(), fast);
  if (stop == nullptr) return;
  check(fast.name.raw == general.name.raw && fast.category.raw == general.category.raw);
  check(fast.id == general.id && fast.pid == general.pid && fast.tid == general.tid);
  check(fast.ts == general.ts && fast.dur == general.dur && fast.has == general.has);
  check(fast.phase == general.phase && fast.args_text == general.args_text);
  check(fast.args.size() == general.args.size());
  line[static_cast<std::size_t>(stop - line.data())] = '\n';
  Event brief;
  check(two.brief(line.data(), stop + 1, brief) == stop);
  check(brief.name.raw == fast.name.raw && brief.category.raw == fast.category.raw);
  check(brief.id == fast.id && brief.pid == fast.pid && brief.tid == fast.tid);
  check(brief.ts == fast.ts && brief.dur == fast.dur && brief.has == fast.has);
  check(brief.phase == fast.phase && brief.args_text == fast.args_text);
  if (!brief.brief) return;
  check(brief.args[0].key == fast.args[0].key && brief.args[0].value == fast.args[0].value);
  if (brief.args.size() == 2) {
    const JsonField& last = fast.args.back();
    check(brief.args[1].key == last.key && brief.args[1].value == last.value);
    check(brief.args[1].kind == last.kind && brief.args[1].number == last.number);
  }
  std::vector<JsonField> room;
  check(members_of(brief.args_text, room).size() == fast.args.size());
  // The same line again: a repeat need not be found, but must be right.
  Repeat repeat;
  const char* again = two.repeat(line.data(), stop + 1, repeat);
  if (again == nullptr) return;
  check(again == stop && repeat.alike != 0 && repeat.alike == brief.alike);
  check(repeat.ts == fast.ts && repeat.dur == fast.dur && (fast.has & kHasDur) != 0);
  check(repeat.has_result == (brief.args.size() == 2));
  if (repeat.has_result) check(repeat.result == brief.args[1].number);
}

// Lines one after the other, as a block of vouched text has them: what one says of itself does not
// depend on those before it.
void compare_neighbours(std::string_view text, FileClock clock) {
  std::string lines(text);
  lines += '\n';
  const std::size_t size = lines.size();
  lines.append(kPadding, '\0');
  const char* end = lines.data() + size;
  Parser warm(clock);
  std::map<std::uint64_t, std::tuple<std::string_view, std::string_view, std::int64_t, std::int64_t,
                                     std::string_view>>
      known;
  for (const char* p = lines.data(); p < end;) {
    Event event;
    Event alone;
    Repeat repeat;
    Parser cold(clock);
    const char* fresh = cold.brief(p, end, alone);
    const char* again = warm.repeat(p, end, repeat);
    const char* stop = warm.brief(p, end, event);
    check(stop == fresh);
    if (again != nullptr) {
      check(again == stop && event.brief && repeat.alike == event.alike);
      check(repeat.ts == event.ts && repeat.dur == event.dur);
      check(repeat.has_result == (event.args.size() == 2));
      if (repeat.has_result) check(repeat.result == event.args[1].number);
    }
    if (stop != nullptr) {
      check(event.name.raw == alone.name.raw && event.category.raw == alone.category.raw);
      check(event.pid == alone.pid && event.tid == alone.tid && event.id == alone.id);
      check(event.ts == alone.ts && event.dur == alone.dur && event.has == alone.has);
      check(event.args.size() == alone.args.size() && event.args_text == alone.args_text);
    }
    if (stop != nullptr && event.alike != 0) {
      const auto what =
          std::tuple(event.name.raw, event.category.raw, event.pid, event.tid, event.args[0].value);
      check(known.emplace(event.alike, what).first->second == what);
    }
    p = std::find(p, end, '\n') + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = std::make_shared<InFile>();
  // The first byte chooses what the file is taken for.
  if (size != 0 && data[0] == 'D') file->layout = FileLayout::kDocument;
  if (size != 0 && data[0] == 'N') file->clock.digits = 0;
  compare_neighbours(text, file->clock);
  Block block;
  block.take(file, text);
  Stats stats({true, true, 2});
  BatchMaker maker({});
  maker.begin(file);
  std::uint64_t records = 0;
  block.records([&](const Event& event, std::uint64_t line) {
    ++records;
    compare_paths(event, file->clock);
    check(json::valid(event.line, json::Dialect::kAny));
    std::string strict;
    append_strict_json(strict, event.line);
    check(json::valid(strict, json::Dialect::kAny));
    std::string again;
    append_strict_json(again, strict);
    check(again == strict);
    std::vector<JsonField> room;
    check(members_of_any(event.args_text, room).size() == event.args.size());
    stats.add(event, 0, {0, line});
    maker.add(event);
  });
  const Damage& damage = block.damage();
  check(damage.records == records);
  check(damage.metadata + damage.own + damage.events == records);
  const EventBatch batch = maker.take();
  check(static_cast<std::uint64_t>(batch.rows) == damage.events);
  stats.finish();
  return 0;
}
