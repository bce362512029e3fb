#include "buffer/span.hpp"

#include <memory>
#include <thread>

#include "support/recording.hpp"

using dft::buffer::close_span;
using dft::buffer::Draft;
using dft::buffer::open_span;
using dft::buffer::Span;
using dft::buffer::this_thread;
using dft::record::ArgType;
using dft::record::kOwnLane;
using fixture::Recording;

namespace {

// A span as the C API opens and closes it; keeps the id beyond its end.
struct Open {
  Open() {
    dft::buffer::ThreadState& t = *this_thread();
    dft::buffer::take_back(t);
    open_span(t, span, dft::buffer::new_id(t), 1, 2);
    span.draft.head.start = dft::record::ticks();
    id = span.draft.head.id;
  }
  void close() {
    if (span.live != 0 && !dft::buffer::try_close(span)) close_span(span, dft::record::ticks());
  }
  // Skips the fast path.
  void close_slowly() { close_span(span, dft::record::ticks()); }
  Span span;
  std::uint64_t id;
};

std::string bytes_of(const Draft& draft) {
  return {reinterpret_cast<const char*>(draft.args()), draft.args_size()};
}

}  // namespace

TEST_CASE("levels start at 1 and parents are the enclosing spans") {
  Recording recording;
  Open a;
  Open b;
  Open c;
  c.close();
  Open d;
  d.close();
  b.close();
  a.close();
  Open e;
  e.close();
  auto spans = recording.spans();
  REQUIRE(spans.size() == 5);
  CHECK(spans[a.id].level == 1);
  CHECK(spans[a.id].parent == 0);
  CHECK(spans[b.id].level == 2);
  CHECK(spans[b.id].parent == a.id);
  CHECK(spans[c.id].level == 3);
  CHECK(spans[c.id].parent == b.id);
  CHECK(spans[d.id].level == 3);
  CHECK(spans[d.id].parent == b.id);
  CHECK(spans[e.id].level == 1);
  CHECK(spans[e.id].parent == 0);
  for (const auto& [id, head] : spans) CHECK(head.flags == 0);
  CHECK(spans[a.id].start <= spans[b.id].start);
  CHECK(spans[a.id].start + spans[a.id].duration >= spans[b.id].start + spans[b.id].duration);
}

TEST_CASE("the fast path of a span records the same as the slow path") {
  Recording recording(false);
  const bool before = dft::record::g_counter_clock;
  dft::record::g_counter_clock = true;
  this_thread();
  dft::buffer::next_ids(*this_thread());
  Open warm;  // takes the first chunk
  warm.close_slowly();
  Span span;
  REQUIRE(dft::buffer::try_open(span, 1, 2));
  const std::uint64_t id = span.draft.head.id;
  std::string wanted;
  for (std::uint32_t i = 0; i < 11; ++i) {  // as many as fit inline
    CHECK(span.draft.try_put(i, ArgType::kInt, i));
    wanted += fixture::make_arg(i, ArgType::kInt, i);
  }
  CHECK_FALSE(span.draft.try_put(99, ArgType::kInt, 99));
  REQUIRE(dft::buffer::try_close(span));
  CHECK(span.live == 0);
  CHECK_FALSE(dft::buffer::try_close(span));
  const auto found = recording.records();
  REQUIRE(found.size() == 2);
  CHECK(found[1].head.id == id);
  CHECK(found[1].head.kind == dft::record::Kind::kSpan);
  CHECK(found[1].head.level == 1);
  CHECK(found[1].args == wanted);
  CHECK(this_thread()->level == 0);
  // When the fast path does not apply, it returns false and changes nothing.
  Open outer;
  Open inner;
  CHECK_FALSE(dft::buffer::try_close(outer.span));  // not the innermost
  const auto slot = dft::buffer::reserve(*this_thread(), 64);
  CHECK_FALSE(dft::buffer::try_close(inner.span));  // a record is in progress
  fixture::commit(slot, 0);
  CHECK(this_thread()->level == 2);
  dft::record::g_counter_clock = false;
  CHECK_FALSE(dft::buffer::try_close(inner.span));
  CHECK_FALSE(dft::buffer::try_open(span, 1, 2));
  dft::record::g_counter_clock = true;
  CHECK(dft::buffer::try_close(inner.span));
  CHECK(dft::buffer::try_close(outer.span));
  dft::record::g_counter_clock = before;
}

TEST_CASE("the fast path fills a chunk to its end and not beyond") {
  Recording recording(false);
  const bool before = dft::record::g_counter_clock;
  dft::record::g_counter_clock = true;
  std::vector<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    Open span;
    for (std::uint32_t n = 0; n < i % 12; ++n) span.span.draft.put(n + 1, ArgType::kUint, i);
    ids.push_back(span.id);
    span.close();
  }
  dft::record::g_counter_clock = before;
  std::vector<std::uint64_t> found;
  for (const auto& item : recording.records()) {
    const std::uint32_t args = static_cast<std::uint32_t>(found.size()) % 12;
    REQUIRE(item.args.size() == args * 16);
    if (args > 0)
      REQUIRE(item.args.ends_with(fixture::make_arg(args, ArgType::kUint, found.size())));
    found.push_back(item.head.id);
  }
  CHECK(found == ids);
}

TEST_CASE("ending twice does nothing, and a span can be dropped") {
  Recording recording;
  Open a;
  a.close();
  a.close();
  Open b;
  Open c;
  drop_span(b.span);
  CHECK(this_thread()->level == 0);
  c.close();
  auto spans = recording.spans();
  CHECK(spans.size() == 2);
  CHECK(spans.count(b.id) == 0);
  CHECK(this_thread()->level == 0);
}

TEST_CASE("spans that never ended are removed by the end of the enclosing one") {
  Recording recording;
  Open outer;
  Open leaked;
  Open deeper;
  Open deepest;
  outer.close();
  CHECK(this_thread()->level == 0);
  CHECK(this_thread()->parent == 0);
  Open next;
  next.close();
  auto spans = recording.spans();
  CHECK(spans.size() == 2);
  CHECK(spans[next.id].level == 1);
  CHECK(spans[next.id].parent == 0);
  CHECK(spans[outer.id].flags == 0);
}

TEST_CASE("a span that outlives the enclosing one gets its own lane") {
  Recording recording;
  Open a;
  Open b;
  a.close();
  Open c;
  b.close();
  CHECK(this_thread()->parent == c.id);
  CHECK(this_thread()->level == 1);
  c.close();
  auto spans = recording.spans();
  CHECK((spans[a.id].flags & kOwnLane) == 0);
  CHECK((spans[b.id].flags & kOwnLane) != 0);
  CHECK((spans[c.id].flags & kOwnLane) == 0);
  CHECK(spans[b.id].parent == a.id);
}

TEST_CASE(
    "a span that outlives its parent and ends under newer, deeper ones leaves them in place") {
  Recording recording;
  Open a;
  Open b;  // level 2
  a.close();
  Open d;
  Open e;
  Open f;  // level 3: deeper than b was
  b.close();
  CHECK(this_thread()->parent == f.id);
  CHECK(this_thread()->level == 3);
  f.close();
  e.close();
  d.close();
  CHECK(this_thread()->level == 0);
  CHECK(this_thread()->parent == 0);
  auto spans = recording.spans();
  CHECK((spans[b.id].flags & kOwnLane) != 0);
  CHECK((spans[d.id].flags & kOwnLane) == 0);
  CHECK((spans[e.id].flags & kOwnLane) == 0);
  CHECK((spans[f.id].flags & kOwnLane) == 0);
}

TEST_CASE("a span that ends on another thread gets its own lane and leaves that thread alone") {
  Recording recording;
  auto moved = std::make_unique<Open>();
  std::uint64_t other = 0;
  std::thread([&] {
    Open mine;
    other = mine.id;
    moved->close();
    CHECK(this_thread()->parent == mine.id);
    CHECK(this_thread()->level == 1);
    mine.close();
  }).join();
  auto spans = recording.spans();
  REQUIRE(spans.size() == 2);
  CHECK((spans[moved->id].flags & kOwnLane) != 0);
  CHECK(spans[other].flags == 0);
}

TEST_CASE("a span that is open while its thread gets a new spool is recorded there") {
  Recording recording;
  Open outer;
  dft::buffer::new_generation();
  Open inner;
  inner.close();
  outer.close();
  auto spans = recording.spans();
  CHECK(spans.size() == 2);
  CHECK(spans[inner.id].parent == outer.id);
  CHECK(spans[inner.id].level == 2);
}

TEST_CASE("a span that ended on another thread leaves its own thread's stack") {
  Recording recording;
  Open outer;
  auto moved = std::make_unique<Open>();
  std::thread([&] { moved->close(); }).join();
  Open next;
  CHECK(next.span.draft.head.parent == outer.id);
  CHECK(next.span.draft.head.level == 2);
  next.close();
  outer.close();
  CHECK(this_thread()->level == 0);
}

TEST_CASE("spans that crossed at several levels are all remembered") {
  Recording recording;
  Open a;
  Open b;
  a.close();
  Open d;
  Open e;
  Open f;
  e.close();  // leaves f behind, deeper than b was
  Open g;
  Open h;
  Open i;
  f.close();
  CHECK(this_thread()->parent == i.id);
  b.close();
  CHECK(this_thread()->parent == i.id);
  i.close();
  h.close();
  g.close();
  d.close();
  CHECK(this_thread()->level == 0);
  auto spans = recording.spans();
  for (const Open* span : {&b, &f}) CHECK((spans[span->id].flags & kOwnLane) != 0);
  for (const Open* span : {&a, &d, &e, &g, &h, &i}) CHECK((spans[span->id].flags & kOwnLane) == 0);
}

TEST_CASE("a span from before a restart is not recorded after it") {
  Recording recording;
  Open before;
  dft::buffer::new_epoch();
  dft::buffer::new_generation();
  Open after;
  before.close();
  CHECK(this_thread()->level == 1);
  after.close();
  auto spans = recording.spans();
  CHECK(spans.size() == 1);
  CHECK(spans.count(after.id) == 1);
}

TEST_CASE("very deep nesting is no longer tracked, but still works") {
  Recording recording;
  this_thread()->level = 70000;
  Open deep;
  CHECK(deep.span.draft.head.level == 0xffff);
  deep.close();
  CHECK(recording.spans()[deep.id].level == 0xffff);
}

TEST_CASE("arguments keep their order, inline or on the heap") {
  Draft args;
  args.init();
  std::string wanted;
  for (std::uint32_t i = 0; i < 200; ++i) {
    args.put(i + 1, ArgType::kInt, i * 3);
    wanted += fixture::make_arg(i + 1, ArgType::kInt, i * 3);
    const std::string text(i, static_cast<char>('a' + i % 26));
    args.put_bytes(i + 1, ArgType::kString, text);
    wanted += fixture::make_bytes(i + 1, ArgType::kString, text);
    REQUIRE(bytes_of(args) == wanted);
  }
  args.clear();
  CHECK(args.args_size() == 0);
  args.put(9, ArgType::kUint, 1);  // inline again
  CHECK(bytes_of(args) == fixture::make_arg(9, ArgType::kUint, 1));
  args.clear();
}

TEST_CASE("a string argument of any length is padded with zeros") {
  for (std::size_t n = 0; n < 40; ++n) {
    Draft args;
    std::memset(static_cast<void*>(&args), 0xee, sizeof args);  // garbage, as on a stack
    args.init();
    args.put_bytes(1, ArgType::kString, std::string(n, 'x'));
    CHECK(bytes_of(args) == fixture::make_bytes(1, ArgType::kString, std::string(n, 'x')));
    args.clear();
  }
}

TEST_CASE("an oversized string is truncated, and an argument that does not fit is omitted") {
  Draft args;
  args.init();
  const std::string huge(dft::record::kMaxString + 100, 'h');
  args.put_bytes(1, ArgType::kString, huge);
  CHECK(args.args_size() == sizeof(dft::record::Arg) + dft::record::kMaxString);
  for (int i = 0; i < 6; ++i) args.put_bytes(2, ArgType::kString, huge);
  CHECK(args.args_size() <= dft::record::kMaxRecord);
  CHECK(args.args_size() % (sizeof(dft::record::Arg) + dft::record::kMaxString) == 0);
  args.put(3, ArgType::kInt, 1);
  args.clear();
}

TEST_CASE("a span's arguments are in its record, even if there are many") {
  Recording recording(false);
  Open a;
  const std::string text(100000, 't');
  a.span.draft.put(3, ArgType::kInt, 42);
  a.span.draft.put_bytes(4, ArgType::kString, text);
  a.close();
  const auto found = recording.records();
  REQUIRE(found.size() == 1);
  CHECK(found[0].args ==
        fixture::make_arg(3, ArgType::kInt, 42) + fixture::make_bytes(4, ArgType::kString, text));
}

TEST_CASE("names without an id are stored in the record") {
  Draft args;
  args.init();
  CHECK(dft::buffer::inline_names(args, 0, "name", 5, "cat") == dft::record::kInlineName);
  CHECK(dft::buffer::inline_names(args, 5, "name", 0, "cat") == dft::record::kInlineCategory);
  CHECK(bytes_of(args) == fixture::make_bytes(0, ArgType::kString, "name") +
                              fixture::make_bytes(0, ArgType::kString, "cat"));
  CHECK(dft::buffer::inline_names(args, 5, "name", 6, "cat") == 0);
  args.clear();
}

TEST_CASE("a suspended span does not enclose what runs meanwhile") {
  dft::buffer::Inside inside{};
  Recording recording;
  Open outer;
  Open generator;
  Open within;
  within.close();
  dft::buffer::suspend(generator.span, nullptr, inside);
  Open beside;
  Open deeper;
  dft::buffer::Before before;
  dft::buffer::resume(generator.span, inside, before);
  CHECK(before.parent == deeper.id);
  Open again;
  again.close();
  dft::buffer::suspend(generator.span, &before, inside);
  CHECK(this_thread()->level == 3);
  deeper.close();
  beside.close();
  generator.close_slowly();
  Open after;
  after.close();
  outer.close();
  auto spans = recording.spans();
  CHECK(spans[within.id].parent == generator.id);
  CHECK(spans[beside.id].parent == outer.id);
  CHECK(spans[beside.id].level == 2);
  CHECK(spans[again.id].parent == generator.id);
  CHECK(spans[again.id].level == 3);
  CHECK(spans[deeper.id].level == 3);
  CHECK((spans[deeper.id].flags & kOwnLane) == 0);
  CHECK((spans[generator.id].flags & kOwnLane) != 0);
  CHECK(spans[generator.id].parent == outer.id);
  CHECK((spans[beside.id].flags & kOwnLane) == 0);
  CHECK(spans[after.id].parent == outer.id);
  CHECK(spans[after.id].level == 2);
  CHECK(this_thread()->level == 0);
}

TEST_CASE("a span that is never suspended stays on its thread") {
  Recording recording;
  Open coroutine;
  coroutine.close();
  CHECK(recording.spans()[coroutine.id].flags == 0);
}

TEST_CASE("spans still open inside a span are suspended with it") {
  dft::buffer::Inside inside{};
  Recording recording;
  Open generator;
  Open held;
  dft::buffer::suspend(generator.span, nullptr, inside);
  CHECK(this_thread()->level == 0);
  CHECK(this_thread()->parent == 0);
  Open other;
  held.close();
  other.close();
  generator.close_slowly();
  auto spans = recording.spans();
  CHECK((spans[held.id].flags & kOwnLane) != 0);
  CHECK(spans[other.id].level == 1);
  CHECK((spans[other.id].flags & kOwnLane) == 0);
}

TEST_CASE("the innermost span is restored on resume") {
  Recording recording;
  dft::buffer::Inside inside{};
  dft::buffer::Before before;
  Open outer;
  Open generator;
  Open held;
  dft::buffer::suspend(generator.span, nullptr, inside);
  Open beside;
  dft::buffer::resume(generator.span, inside, before);
  Open later;
  later.close();
  held.close();
  Open last;
  last.close();
  dft::buffer::suspend(generator.span, &before, inside);
  beside.close();
  generator.close_slowly();
  outer.close();
  auto spans = recording.spans();
  CHECK(spans[later.id].parent == held.id);
  CHECK(spans[later.id].level == 4);
  CHECK(spans[held.id].parent == generator.id);
  CHECK(spans[last.id].parent == generator.id);
  CHECK(spans[beside.id].parent == outer.id);
  CHECK(this_thread()->level == 0);
}

TEST_CASE("a span is resumed on another thread") {
  dft::buffer::Inside inside{};
  Recording recording;
  Open outer;
  Open coroutine;
  dft::buffer::suspend(coroutine.span, nullptr, inside);
  std::uint64_t inner = 0;
  std::thread([&] {
    dft::buffer::Before before;
    dft::buffer::resume(coroutine.span, inside, before);
    CHECK(before.parent == 0);
    Open span;
    inner = span.id;
    span.close();
    dft::buffer::suspend(coroutine.span, &before, inside);
    CHECK(this_thread()->level == 0);
    close_span(coroutine.span, dft::record::ticks());
  }).join();
  outer.close();
  auto spans = recording.spans();
  CHECK(spans[inner].parent == coroutine.id);
  CHECK((spans[coroutine.id].flags & kOwnLane) != 0);
  CHECK((spans[outer.id].flags & kOwnLane) == 0);
}

TEST_CASE("a span of a closed trace is not resumed") {
  dft::buffer::Inside inside{};
  Open* open = nullptr;
  {
    Recording recording;
    open = new Open;
    dft::buffer::suspend(open->span, nullptr, inside);
  }
  Recording recording;
  dft::buffer::Before before;
  dft::buffer::resume(open->span, inside, before);
  CHECK(open->span.live == 0);
  CHECK(this_thread()->level == 0);
  CHECK(recording.spans().empty());
  delete open;
}

TEST_CASE("a mark has no children") {
  Recording recording;
  Open outer;
  dft::buffer::Mark mark;
  dft::buffer::open_mark(mark);
  Open beside;
  beside.close();
  const std::uint64_t id = mark.id;
  dft::buffer::close_mark(mark, dft::record::ticks(), 1, 2, 0, nullptr, 0);
  CHECK(mark.live == 0);
  dft::buffer::close_mark(mark, dft::record::ticks(), 1, 2, 0, nullptr,
                          0);  // the second close has no effect
  outer.close();
  auto spans = recording.spans();
  CHECK(spans.size() == 3);
  CHECK(spans[id].parent == outer.id);
  CHECK(spans[id].level == 2);
  CHECK(spans[beside.id].parent == outer.id);
  CHECK(spans[id].start <= spans[beside.id].start);
}

TEST_CASE("a mark belongs to the thread it began on") {
  Recording recording;
  Open outer;
  dft::buffer::Mark mark;
  dft::buffer::open_mark(mark);
  const std::uint64_t id = mark.id;
  Open open;
  dft::buffer::close_mark(mark, dft::record::ticks(), 1, 2, 0, nullptr, 0);
  open.close();
  outer.close();
  auto spans = recording.spans();
  CHECK(spans[id].parent == outer.id);
  CHECK(spans[id].level == 2);
}
