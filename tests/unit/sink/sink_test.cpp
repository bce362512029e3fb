#include "sink/sink.hpp"

#include <numeric>

#include "base/message.hpp"
#include "support/fixture.hpp"
#include "support/gunzip.hpp"
#include "support/strict_json.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::Spool;
using dft::sink::Sink;
using fixture::event_ids;
using fixture::make_span;
using fixture::read_file;
using fixture::state_of;
using fixture::TemporaryDirectory;

namespace {

using Ids = std::vector<std::uint64_t>;

Ids range(std::uint64_t from, std::uint64_t to) {
  Ids list(to - from + 1);
  std::iota(list.begin(), list.end(), from);
  return list;
}

// A spool, its sink, and a thread that writes spans numbered from 1.
class Bench {
 public:
  explicit Bench(std::uint32_t flags = 0, std::size_t block = 1 << 16) {
    dft::say_into((directory / "messages").c_str());
    const bool compressed = (flags & dft::buffer::kCompressed) != 0;
    name = compressed ? "t.pfw.gz" : "t.pfw";
    spool = fixture::make_spool(directory / ".t.pfw.spool", name.c_str(), flags);
    REQUIRE(spool != nullptr);
    sink = Sink::create(*spool, directory.path(), block);
    REQUIRE(sink != nullptr);
  }
  ~Bench() {
    sink->abandon();
    spool->retire(true);
    dft::say_into(nullptr);
  }
  // Writes spans into a new chunk and leaves it in this state.
  ChunkHead& fill(std::uint64_t spans, ChunkState state) {
    ChunkHead* chunk = spool->take(10, true, 77);
    if (chunk == nullptr && fixture::grow(*spool, 10, true)) chunk = spool->take(10, true, 77);
    REQUIRE(chunk != nullptr);
    for (std::uint64_t i = 0; i < spans; ++i) REQUIRE(fixture::put(*chunk, make_span(++last)));
    fixture::set_state(*chunk, state);
    return *chunk;
  }
  std::string text() const {
    const std::string bytes = read_file(directory / name);
    return name.ends_with(".gz") ? fixture::gunzip_text(bytes) : bytes;
  }
  std::string messages() const { return read_file(directory / "messages"); }

  TemporaryDirectory directory;
  std::string name;
  Spool* spool = nullptr;
  Sink* sink = nullptr;
  std::uint64_t last = 0;
};

}  // namespace

TEST_CASE("full chunks are drained and freed, those in use stay") {
  Bench bench;
  ChunkHead& full = bench.fill(10, ChunkState::kFull);
  ChunkHead& owned = bench.fill(5, ChunkState::kOwned);
  REQUIRE(bench.sink->drain(Sink::Scope::kFull));
  CHECK(event_ids(bench.text()) == range(1, 10));
  CHECK(bench.text().starts_with(fixture::kPreamble));
  CHECK(state_of(full) == ChunkState::kFree);
  CHECK(full.committed.load() == 0);
  CHECK(full.drained.load() == 0);
  CHECK(state_of(owned) == ChunkState::kOwned);
  CHECK(owned.drained.load() == 0);
  REQUIRE(bench.sink->drain(Sink::Scope::kFull));
  CHECK(event_ids(bench.text()) == range(1, 10));
}

TEST_CASE("a chunk in use is drained up to what is committed, each record once") {
  Bench bench;
  ChunkHead& owned = bench.fill(5, ChunkState::kOwned);
  for (std::uint64_t round = 1; round <= 4; ++round) {
    REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
    CHECK(event_ids(bench.text()) == range(1, bench.last));
    CHECK(state_of(owned) == ChunkState::kOwned);
    fixture::put(owned, make_span(++bench.last));
  }
  fixture::set_state(owned, ChunkState::kFull);
  REQUIRE(bench.sink->drain(Sink::Scope::kFull));
  CHECK(event_ids(bench.text()) == range(1, bench.last));
  CHECK(state_of(owned) == ChunkState::kFree);
}

TEST_CASE("chunks are drained in the order in which they were taken") {
  Bench bench;
  for (int i = 0; i < 40; ++i) bench.fill(3, i % 3 == 0 ? ChunkState::kOwned : ChunkState::kFull);
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));  // more than one batch
  CHECK(event_ids(bench.text()) == range(1, 120));
}

TEST_CASE("an empty trace still has its preamble and its end record") {
  for (const std::uint32_t flags : {0u, std::uint32_t{dft::buffer::kCompressed}}) {
    Bench bench(flags);
    CHECK_FALSE(fixture::exists(bench.directory / bench.name));
    REQUIRE(bench.sink->finish({}));
    const auto lines = fixture::lines_of(bench.text());
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == "[");
    CHECK(lines[2].find("\"name\":\"end\"") != lines[2].npos);
    CHECK(bench.sink->closed());
    CHECK(bench.sink->finish({}));  // a second call changes nothing
    CHECK(fixture::lines_of(bench.text()).size() == 3);
  }
}

TEST_CASE("a compressed trace is whole members of whole lines with consistent headers") {
  Bench bench(dft::buffer::kCompressed, 1000);
  for (int i = 0; i < 30; ++i) bench.fill(20, ChunkState::kFull);
  REQUIRE(bench.sink->finish({}));
  const std::string bytes = read_file(bench.directory / bench.name);
  const auto members = fixture::gunzip(bytes);
  CHECK(members.size() >= 30);  // each chunk has more text than a block takes
  std::size_t at = 0;
  for (const std::string& member : members) {
    CHECK(member.ends_with('\n'));
    std::uint32_t size = 0;
    std::uint32_t lines = 0;
    std::memcpy(&size, bytes.data() + at + 16, 4);
    std::memcpy(&lines, bytes.data() + at + 20, 4);
    // The opening bracket is not a record.
    CHECK(lines + (at == 0 ? 1 : 0) == fixture::lines_of(member).size());
    at += size;
  }
  CHECK(at == bytes.size());
  CHECK(event_ids(bench.text()) == range(1, 600));
}

TEST_CASE("every line is JSON, and the end record holds their number") {
  Bench bench;
  bench.fill(25, ChunkState::kFull);
  REQUIRE(bench.sink->finish({}));
  auto lines = fixture::lines_of(bench.text());
  CHECK(lines[0] == "[");
  lines.erase(lines.begin());
  for (const std::string& line : lines) CHECK_MESSAGE(json::valid(line), line);
  CHECK(lines.back().find("\"name\":\"end\"") != std::string::npos);
  CHECK(fixture::number_after(lines.back(), "\"num_events\":") == lines.size() - 1);
  CHECK(lines.back().find("recovered") == std::string::npos);
  CHECK(lines.back().find("lost") == std::string::npos);
}

TEST_CASE("finish() drains everything, however small the blocks") {
  Bench bench(0, 1);  // one chunk per block
  for (int i = 0; i < 1100; ++i) bench.fill(1, i % 2 == 0 ? ChunkState::kFull : ChunkState::kOwned);
  REQUIRE(bench.sink->finish({}));
  CHECK(event_ids(bench.text()) == range(1, 1100));
}

TEST_CASE("lost events are reported once each, and counted in the end record") {
  Bench bench;
  bench.spool->add_lost(3);
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  bench.spool->add_lost(4);
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  REQUIRE(bench.sink->finish({}));
  Ids reported;
  for (const std::string& line : fixture::lines_of(bench.text())) {
    if (line.find("\"name\":\"lost\"") == line.npos) continue;
    reported.push_back(fixture::number_after(line, "\"events\":"));
  }
  CHECK(reported == Ids{3, 4});
  CHECK(fixture::number_after(fixture::line_with(bench.text(), "\"name\":\"end\""), "\"lost\":") ==
        7);
}

TEST_CASE("a damaged record is counted as lost, and reported in the trace") {
  Bench bench;
  ChunkHead& chunk = bench.fill(2, ChunkState::kOwned);
  fixture::put(chunk, std::string(48, '\xff'));
  fixture::put(chunk, make_span(9));
  SUBCASE("found during the run") { REQUIRE(bench.sink->drain(Sink::Scope::kEverything)); }
  SUBCASE("found at the end") {}
  REQUIRE(bench.sink->finish({}));
  CHECK(event_ids(bench.text()) == Ids{1, 2});
  CHECK(bench.spool->head().lost.load() == 1);
  const std::string end = fixture::line_with(bench.text(), "\"name\":\"end\"");
  CHECK_MESSAGE(end.find("\"lost\":1") != end.npos, end);
}

TEST_CASE("records stay in the spool until they can be written") {
  Bench bench;
  ChunkHead& chunk = bench.fill(2, ChunkState::kFull);
  fixture::put(chunk, std::string(48, '\xff'));  // damaged, and found on every attempt
  REQUIRE(::mkdir((bench.directory / "t.pfw").c_str(), 0700) == 0);
  CHECK_FALSE(bench.sink->drain(Sink::Scope::kEverything));
  CHECK_FALSE(bench.sink->drain(Sink::Scope::kEverything));
  CHECK(state_of(chunk) == ChunkState::kFull);
  CHECK(chunk.drained.load() == 0);
  CHECK(bench.messages().empty());  // it may still succeed
  REQUIRE(::rmdir((bench.directory / "t.pfw").c_str()) == 0);
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  CHECK(event_ids(bench.text()) == range(1, 2));
  CHECK(bench.spool->head().lost.load() == 1);  // not once per attempt
}

TEST_CASE("a trace that was removed during the run is not created again") {
  Bench bench;
  ChunkHead& chunk = bench.fill(2, ChunkState::kOwned);
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  REQUIRE(::unlink((bench.directory / "t.pfw").c_str()) == 0);
  fixture::put(chunk, make_span(++bench.last));
  CHECK_FALSE(bench.sink->finish({}));
  CHECK_FALSE(fixture::exists(bench.directory / "t.pfw"));
  CHECK(fixture::lines_of(bench.messages()).size() == 1);
  CHECK(bench.messages().find("t.pfw") != std::string::npos);
  CHECK(bench.messages().find("removed or replaced") != std::string::npos);
  CHECK(bench.messages().find("dftracer recover") != std::string::npos);
}

TEST_CASE("a thread that needs room frees a chunk by writing, or by dropping the oldest") {
  Bench bench;
  CHECK_FALSE(bench.sink->reclaim_or_drop());  // no chunk is full
  bench.fill(2, ChunkState::kFull);
  CHECK(bench.sink->reclaim_or_drop());
  CHECK(event_ids(bench.text()) == range(1, 2));
  ChunkHead& oldest = bench.fill(3, ChunkState::kFull);
  ChunkHead& newer = bench.fill(4, ChunkState::kFull);
  REQUIRE(::unlink((bench.directory / "t.pfw").c_str()) == 0);
  CHECK(bench.sink->reclaim_or_drop());
  CHECK(state_of(oldest) == ChunkState::kFree);
  CHECK(state_of(newer) == ChunkState::kFull);
  CHECK(bench.spool->head().lost.load() == 3);
  CHECK(bench.messages().find("events are being lost") != std::string::npos);
}

TEST_CASE("names interned later are available to the records that use them") {
  Bench bench;
  ChunkHead& chunk = bench.fill(1, ChunkState::kOwned);
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  bench.spool->each_chunk([](ChunkHead& names, std::uint64_t) {
    if (state_of(names) == ChunkState::kNames) fixture::put(names, fixture::make_name(4, "late"));
  });
  fixture::put(chunk, fixture::make_record({0, dft::record::Kind::kSpan, dft::record::kTimesGiven,
                                            1, 4, 2, 2, 0, 5, 5}));
  REQUIRE(bench.sink->drain(Sink::Scope::kEverything));
  CHECK(fixture::line_with(bench.text(), "\"id\":2,").find("\"name\":\"late\"") !=
        std::string::npos);
}

TEST_CASE("a continued file gets the next preamble where the last trace ended") {
  Bench bench;
  fixture::write_file(bench.directory / "t.pfw", "[\n{\"id\":0}\n");
  struct stat info{};
  REQUIRE(::stat((bench.directory / "t.pfw").c_str(), &info) == 0);
  bench.spool->head().trace_inode = info.st_ino;
  bench.spool->head().trace_size = static_cast<std::uint64_t>(info.st_size);
  bench.fill(1, ChunkState::kFull);
  REQUIRE(bench.sink->finish({}));
  CHECK(bench.text().starts_with("[\n{\"id\":0}\n" + std::string(fixture::kPreamble)));
  CHECK(event_ids(bench.text()) == range(1, 1));
}
