// A death at every step of a drain: a recoverer finishes the spool and the file in the state in
// which they were left. Whatever the step, the trace has every record exactly once.
#include <numeric>

#include "base/message.hpp"
#include "recovery/recover.hpp"
#include "sink/sink.hpp"
#include "support/fixture.hpp"
#include "support/gunzip.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::Spool;
using dft::buffer::SpoolHead;
using dft::sink::Sink;
using fixture::Image;
using fixture::make_span;
using fixture::read_file;
using fixture::TemporaryDirectory;

namespace {

constexpr const char* kSpoolName = ".t.pfw.spool";

enum class Step {
  kBefore,       // not started
  kIntended,     // the intent is stored, the file unchanged
  kHalfWritten,  // part of the block is in the file
  kWritten,      // all of it is, and the spool does not record it
  kDone,         // done_number is stored
  kCounted,      // sizes and counts are stored
  kHalfDrained,  // the first chunk is marked
  kDrained,      // all chunks are marked
  kApplied,      // applied_number is stored
  kHalfFreed,    // a drained chunk is half reset
  kEverything,   // after the drain
};
constexpr int kSteps = 11;

// The fields of the head that a drain writes up to this step, in the order of Sink::write_block.
void compose(Step step, const Image& image, const Image& after,
             const std::vector<std::uint64_t>& chunks) {
  SpoolHead& head = image.head();
  SpoolHead& later = after.head();
  head.next_id.store(later.next_id.load());
  if (step >= Step::kIntended) {
    head.intent = later.intent;
    head.intent_number.store(later.intent_number.load());
  }
  if (step >= Step::kDone) {
    head.trace_inode = later.trace_inode;
    head.done_number.store(later.done_number.load());
  }
  if (step >= Step::kCounted) {
    head.trace_size = later.trace_size;
    head.trace_lines = later.trace_lines;
    head.trace_metadata = later.trace_metadata;
    head.trace_files = later.trace_files;
    head.lost_written = later.lost_written;
    head.flags = later.flags;
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    ChunkHead& chunk = image.chunk(chunks[i]);
    if (step >= Step::kDrained || (step == Step::kHalfDrained && i == 0)) {
      chunk.drained.store(chunk.committed.load());
    }
    if (step == Step::kHalfFreed && i == 0) chunk.committed.store(0);
  }
  if (step >= Step::kApplied) head.applied_number.store(later.applied_number.load());
}

struct Scene {
  std::string spool_before;
  std::string spool_after;
  std::string trace_before;  // empty: no file
  std::string trace_after;
  std::vector<std::uint64_t> chunks;  // offsets of the drained chunks
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
};

// Records, drains, records more, and takes a snapshot before and after the last drain.
Scene play(bool compressed, int blocks_before, bool finishing) {
  const TemporaryDirectory directory;
  Scene scene;
  const char* name = compressed ? "t.pfw.gz" : "t.pfw";
  Spool* spool = fixture::make_spool(directory / kSpoolName, name,
                                     compressed ? std::uint32_t{dft::buffer::kCompressed} : 0u);
  REQUIRE(spool != nullptr);
  Sink* sink = Sink::create(*spool, directory.path(), 1 << 16);
  ChunkHead* owned = spool->take(10, true, 70);
  for (int block = 0; block < blocks_before; ++block) {
    for (int i = 0; i < 7; ++i) fixture::put(*owned, make_span(++scene.events));
    REQUIRE(sink->drain(Sink::Scope::kEverything));
  }
  for (int i = 0; i < 5; ++i) fixture::put(*owned, make_span(++scene.events));
  ChunkHead* second = spool->take(10, true, 71);
  for (int i = 0; i < 9; ++i) fixture::put(*second, make_span(++scene.events));
  spool->add_lost(2);
  scene.lost = 2;
  scene.spool_before = read_file(directory / kSpoolName);
  scene.trace_before = read_file(directory / name);
  spool->each_chunk([&](ChunkHead& chunk, std::uint64_t offset) {
    if (&chunk == owned || &chunk == second) scene.chunks.push_back(offset);
  });
  REQUIRE((finishing ? sink->finish({}) : sink->drain(Sink::Scope::kEverything)));
  scene.spool_after = read_file(directory / kSpoolName);
  scene.trace_after = read_file(directory / name);
  sink->abandon();
  spool->retire(true);
  return scene;
}

// Restores the spool and the trace as the death left them, and runs the recoverer.
void check_step(const Scene& scene, Step step, bool compressed) {
  const TemporaryDirectory directory;
  const std::string trace = directory / (compressed ? "t.pfw.gz" : "t.pfw");
  const Image after(scene.spool_after);
  const Image image(step == Step::kEverything ? scene.spool_after : scene.spool_before);
  if (step != Step::kEverything) compose(step, image, after, scene.chunks);
  const std::string added = scene.trace_after.substr(scene.trace_before.size());
  std::string file = scene.trace_before;
  // The first block appears by rename: whole or not at all.
  if (step == Step::kHalfWritten && !file.empty()) file += added.substr(0, added.size() / 2);
  if (step >= Step::kWritten) file += added;
  SpoolHead& head = image.head();
  if (!file.empty()) {
    fixture::write_file(trace, file);
    struct stat info{};
    REQUIRE(::stat(trace.c_str(), &info) == 0);
    if (head.trace_inode != 0) head.trace_inode = info.st_ino;  // the copy has a different inode
  }
  // An owner that cannot exist any more.
  head.owner.start_time += 1;
  fixture::write_file(directory / kSpoolName,
                      {reinterpret_cast<const char*>(image.data()), image.size()});
  dft::recovery::RecoveryCounts found;
  CHECK(dft::recovery::recover_spool(directory.path(), kSpoolName, {}, found) ==
        dft::recovery::RecoveryOutcome::kRecovered);
  CHECK_FALSE(fixture::exists(directory / kSpoolName));
  std::string text = read_file(trace);
  if (compressed) text = fixture::gunzip_text(text);
  std::vector<std::uint64_t> wanted(scene.events);
  std::iota(wanted.begin(), wanted.end(), std::uint64_t{1});
  std::vector<std::uint64_t> ids = fixture::event_ids(text);
  std::sort(ids.begin(), ids.end());
  CHECK(ids == wanted);
  const auto lines = fixture::lines_of(text);
  std::uint64_t openings = 0;
  std::uint64_t ends = 0;
  std::uint64_t reported = 0;
  for (const std::string& line : lines) {
    openings += line.find("\"name\":\"start\"") != line.npos ? 1 : 0;
    ends += line.find("\"name\":\"end\"") != line.npos ? 1 : 0;
    if (line.find("\"name\":\"lost\"") != line.npos) {
      reported += fixture::number_after(line, "\"events\":");
    }
  }
  CHECK(openings == 1);
  CHECK(ends == 1);
  CHECK(reported == scene.lost);
  CHECK(lines.front() == "[");
  CHECK(fixture::number_after(lines.back(), "\"num_events\":") == lines.size() - 2);
  CHECK(fixture::number_after(lines.back(), "\"lost\":") == scene.lost);
}

}  // namespace

TEST_CASE("a death at any step of a drain loses and duplicates nothing") {
  for (const bool compressed : {false, true}) {
    for (const int blocks_before : {0, 1, 3}) {
      const Scene scene = play(compressed, blocks_before, false);
      for (int step = 0; step < kSteps; ++step) {
        CAPTURE(compressed);
        CAPTURE(blocks_before);
        CAPTURE(step);
        check_step(scene, static_cast<Step>(step), compressed);
      }
    }
  }
}

TEST_CASE("a death at any step of the end loses nothing and writes one end record") {
  for (const int blocks_before : {0, 2}) {
    const Scene scene = play(false, blocks_before, true);
    for (int step = 0; step < kSteps; ++step) {
      CAPTURE(blocks_before);
      CAPTURE(step);
      check_step(scene, static_cast<Step>(step), false);
    }
  }
}

TEST_CASE("the end record of a recovered trace without new events is not before its start") {
  for (const bool drained : {false, true}) {
    CAPTURE(drained);
    const TemporaryDirectory directory;
    const int result = fixture::in_child([&] {
      Spool* spool = fixture::make_spool(directory / kSpoolName, "t.pfw");
      if (spool == nullptr) return 1;
      Sink* sink = Sink::create(*spool, directory.path(), 1 << 16);
      return !drained || sink->drain(Sink::Scope::kEverything) ? 0 : 2;
    });
    REQUIRE(result == 0);
    dft::recovery::RecoveryCounts found;
    REQUIRE(dft::recovery::recover_spool(directory.path(), kSpoolName, {}, found) ==
            dft::recovery::RecoveryOutcome::kRecovered);
    const std::string end = fixture::line_with(read_file(directory / "t.pfw"), "\"name\":\"end\"");
    // In microseconds, after 2020: a real time, not zero.
    CHECK(fixture::number_after(end, "\"ts\":") > std::uint64_t{1577836800} * 1000000);
  }
}
