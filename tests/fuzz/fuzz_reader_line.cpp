// Any bytes as a block of a trace: no crash, and the paths of the parser agree on every line.
// What is accepted as JSON is JSON by a strict checker that shares nothing with the reader.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "../unit/json.hpp"
#include "reader/block.hpp"
#include "reader/columns.hpp"
#include "reader/partial.hpp"

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
    const Field& last = fast.args.back();
    check(brief.args[1].key == last.key && brief.args[1].value == last.value);
    check(brief.args[1].kind == last.kind && brief.args[1].number == last.number);
  }
  std::vector<Field> room;
  check(members_of(brief.args_text, room).size() == fast.args.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto file = std::make_shared<File>();
  // The first byte chooses what the file is taken for.
  if (size != 0 && data[0] == 'D') file->shape = Shape::kDocument;
  if (size != 0 && data[0] == 'N') file->clock.digits = 0;
  Block block;
  block.take(file, text);
  Partial partial({true, true, 2});
  BatchMaker maker({});
  maker.begin(file);
  std::uint64_t records = 0;
  block.records([&](const Event& event, std::uint64_t line) {
    ++records;
    compare_paths(event, file->clock);
    check(json::valid(event.line, json::Dialect::kAny));
    partial.add(event, 0, {0, line});
    maker.add(event);
  });
  const Report& report = block.report();
  check(report.records == records);
  check(report.metadata + report.own + report.events == records);
  const Batch batch = maker.take();
  check(static_cast<std::uint64_t>(batch.rows) == report.events);
  partial.finish();
  return 0;
}
