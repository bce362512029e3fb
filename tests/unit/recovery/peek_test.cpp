#include "recovery/peek.hpp"

#include <algorithm>
#include <thread>

#include "sink/sink.hpp"
#include "support/fixture.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::Spool;
using dft::recovery::peek;
using dft::recovery::Peeked;
using fixture::event_ids;

namespace {

constexpr const char* kName = ".t.pfw.spool";

std::vector<std::uint64_t> ids_of(const dft::sink::MmapBuffer& text, const Peeked& peeked) {
  return event_ids(std::string(text.view().substr(peeked.opening)));
}

}  // namespace

TEST_CASE("peek() shows what a living process has recorded, drained or not") {
  const fixture::TemporaryDirectory directory;
  Spool* spool = fixture::make_spool(directory / kName, "t.pfw");
  REQUIRE(spool != nullptr);
  ChunkHead* chunk = spool->take(10, true, 77);
  for (std::uint64_t id = 1; id <= 5; ++id) fixture::put(*chunk, fixture::make_span(id));
  Peeked peeked;
  dft::sink::MmapBuffer text;
  REQUIRE(peek(directory.path(), kName, peeked, text) == 0);
  CHECK(peeked.pid == static_cast<std::uint32_t>(::getpid()));
  CHECK(peeked.life == 0);
  CHECK(peeked.waiting == 5);
  CHECK(std::string(peeked.trace_name) == "t.pfw");
  CHECK(text.view().substr(0, peeked.opening) == fixture::kPreamble);
  CHECK(ids_of(text, peeked) == std::vector<std::uint64_t>{1, 2, 3, 4, 5});

  auto* sink = dft::sink::Sink::create(*spool, directory.path(), 1 << 16);
  REQUIRE(sink->drain(dft::sink::Sink::Scope::kEverything));
  fixture::put(*chunk, fixture::make_span(6));
  const std::uint64_t written = spool->head().trace_lines;
  REQUIRE(peek(directory.path(), kName, peeked, text) == 0);
  CHECK(peeked.written == written);
  CHECK(peeked.waiting == 1);
  CHECK(peeked.trace_size == spool->head().trace_size);
  CHECK(ids_of(text, peeked) == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
  // The spool is unchanged.
  CHECK(fixture::state_of(*chunk) == ChunkState::kOwned);
  CHECK(directory.list() == std::vector<std::string>{kName, "t.pfw"});
  sink->discard();
  spool->retire(true);
}

TEST_CASE("peek() next to a writer sees whole records only") {
  const fixture::TemporaryDirectory directory;
  Spool* spool = fixture::make_spool(directory / kName, "t.pfw");
  REQUIRE(spool != nullptr);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    auto* sink = dft::sink::Sink::create(*spool, directory.path(), 1 << 16);
    std::uint64_t id = 0;
    ChunkHead* chunk = spool->take(10, true, 77);
    while (!done.load()) {
      if (fixture::put(*chunk, fixture::make_span(++id))) continue;
      fixture::set_state(*chunk, ChunkState::kFull);
      (void)sink->drain(dft::sink::Sink::Scope::kEverything);
      (void)sink->drain(
          dft::sink::Sink::Scope::kEverything);  // the second call frees the drained chunk
      chunk = spool->take(10, true, 77);
      if (chunk == nullptr) return;
      fixture::put(*chunk, fixture::make_span(id));
    }
    sink->discard();
  });
  std::uint64_t newest = 0;
  for (int i = 0; i < 300; ++i) {
    Peeked peeked;
    dft::sink::MmapBuffer text;
    CHECK(peek(directory.path(), kName, peeked, text) == 0);
    const std::vector<std::uint64_t> ids = ids_of(text, peeked);
    // A chunk that is reused meanwhile is skipped, so there may be gaps and old records.
    for (const std::uint64_t id : ids) newest = std::max(newest, id);
    CHECK(std::count(ids.begin(), ids.end(), 0) == 0);
  }
  done.store(true);
  writer.join();
  CHECK(newest > 0);
  spool->retire(true);
}

TEST_CASE("peek() rejects a file that is not a spool") {
  const fixture::TemporaryDirectory directory;
  Peeked peeked;
  dft::sink::MmapBuffer text;
  CHECK(peek(directory.path(), kName, peeked, text) == -ENOENT);
  fixture::write_file(directory / kName, "");
  CHECK(peek(directory.path(), kName, peeked, text) == -EAGAIN);
  fixture::write_file(directory / kName, std::string(20000, 'x'));
  CHECK(peek(directory.path(), kName, peeked, text) == -EINVAL);
  fixture::write_file(directory / kName, std::string(20000, '\0'));
  CHECK(peek(directory.path(), kName, peeked, text) == -EAGAIN);
  std::filesystem::create_symlink("/etc/passwd", directory / ".l.spool");
  CHECK(peek(directory.path(), ".l.spool", peeked, text) == -ELOOP);
  fixture::write_file(directory / kName, "dftracer-spool-at /nowhere/x.spool\n");
  CHECK(peek(directory.path(), kName, peeked, text) == -ENOENT);
}
