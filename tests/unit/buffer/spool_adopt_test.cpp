// Spool::adopt(): what it accepts from a good image, and what it rejects of a damaged one.
#include <functional>

#include "support/fixture.hpp"

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::kFixedSize;
using dft::buffer::kPage;
using dft::buffer::kSmallChunk;
using dft::buffer::Spool;
using dft::buffer::SpoolHead;
using fixture::Image;
using fixture::state_of;
using fixture::TemporaryDirectory;

namespace {

// A spool file with three records in one chunk and their names in another.
std::string good_image() {
  const TemporaryDirectory directory;
  Spool* spool = fixture::make_spool(directory / "s.spool", "t.pfw");
  REQUIRE(spool != nullptr);
  ChunkHead* chunk = spool->take(10, true, 77);
  for (std::uint64_t id = 1; id <= 3; ++id) fixture::put(*chunk, fixture::make_span(id));
  const std::string bytes = fixture::read_file(directory / "s.spool");
  spool->retire(true);
  return bytes;
}

constexpr std::uint64_t kNamesAt = kFixedSize + kPage;
constexpr std::uint64_t kChunkAt = kNamesAt + kSmallChunk;
constexpr std::uint64_t kSpan = 48;

const char* refusal(const std::string& bytes, const std::function<void(SpoolHead&)>& damage) {
  const Image image(bytes);
  damage(image.head());
  const char* what = nullptr;
  Spool* spool = Spool::adopt(image.data(), image.size(), "/x/s.spool", &what);
  CHECK((spool == nullptr) == (what != nullptr));
  return what;
}

Spool* adopt(const Image& image) {
  const char* what = nullptr;
  Spool* spool = Spool::adopt(image.data(), image.size(), "/x/s.spool", &what);
  REQUIRE_MESSAGE(spool != nullptr, what);
  return spool;
}

}  // namespace

TEST_CASE("a good image is adopted unchanged") {
  const Image image(good_image());
  Spool* spool = adopt(image);
  CHECK(std::string(spool->path()) == "/x/s.spool");
  CHECK(&spool->head() == &image.head());
  CHECK(std::string(spool->preamble(), spool->head().preamble_size) == fixture::kPreamble);
  CHECK(state_of(image.chunk(kNamesAt)) == ChunkState::kNames);
  CHECK(state_of(image.chunk(kChunkAt)) == ChunkState::kFull);  // nothing appends to it any more
  CHECK(image.chunk(kChunkAt).committed.load() == 3 * kSpan);
  CHECK(image.chunk(kChunkAt).drained.load() == 0);
  CHECK(image.chunk(kChunkAt).thread.load() == 77);
  CHECK(state_of(image.chunk(kChunkAt + kSmallChunk)) == ChunkState::kFree);
}

TEST_CASE("a damaged head is rejected with a reason") {
  const std::string good = good_image();
  CHECK(refusal(good, [](SpoolHead&) {}) == nullptr);
  using Damage = std::function<void(SpoolHead&)>;
  const std::pair<const char*, Damage> cases[] = {
      {"it is not a spool", [](SpoolHead& h) { h.magic[0] = 'X'; }},
      {"it is not a spool", [](SpoolHead& h) { h.magic[7] = '\0'; }},
      {"it was written by another version", [](SpoolHead& h) { h.version = 1; }},
      {"it was written by another version", [](SpoolHead& h) { ++h.version; }},
      {"it was written by another version", [](SpoolHead& h) { h.version = 0; }},
      {"it was written by another version", [](SpoolHead& h) { ++h.head_size; }},
      {"it was never completed", [](SpoolHead& h) { h.ready.store(0); }},
      {"it was never completed", [](SpoolHead& h) { h.ready.store(2); }},
      {"its preamble does not fit", [](SpoolHead& h) { h.preamble_offset += 1; }},
      {"its preamble does not fit", [](SpoolHead& h) { h.preamble_offset = ~0ULL; }},
      {"its preamble does not fit", [](SpoolHead& h) { h.preamble_size = 1 << 30; }},
      {"its preamble does not fit", [](SpoolHead& h) { h.preamble_size = ~0ULL; }},
      {"its preamble is damaged", [](SpoolHead& h) { h.preamble_size = 0; }},
      {"its preamble is damaged", [](SpoolHead& h) { --h.preamble_size; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segments.store(129); }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segments.store(~0u); }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segments.store(2); }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].offset += kPage; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].offset -= 8; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].offset = 0; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].offset = ~0ULL << 12; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].chunk_size = 0; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].chunk_size = kPage; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].chunk_size += 8; }},
      {"its table of segments is damaged",
       [](SpoolHead& h) { h.segment[0].chunk_size = 0xfffff000; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].chunks = 0; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].chunks = 7; }},
      {"its table of segments is damaged", [](SpoolHead& h) { h.segment[0].chunks = ~0u; }},
      {"its last intent is damaged", [](SpoolHead& h) { h.intent.entries = 17; }},
  };
  for (const auto& [reason, damage] : cases) {
    CAPTURE(reason);
    const char* what = refusal(good, damage);
    REQUIRE(what != nullptr);
    CHECK(std::string(what) == reason);
  }
}

TEST_CASE("a name that could lead to another file is rejected") {
  const std::string good = good_image();
  const auto with_name = [&](const std::string& name) {
    return refusal(good, [&](SpoolHead& h) {
      std::memset(h.trace_name, 0, sizeof h.trace_name);
      std::memcpy(h.trace_name, name.data(), std::min(name.size(), sizeof h.trace_name));
    });
  };
  CHECK(with_name("t.pfw") == nullptr);
  CHECK(with_name("t.pfw.gz") == nullptr);
  CHECK(with_name("odd name\n\xff.pfw") == nullptr);
  for (const std::string& name :
       {std::string(), std::string(".pfw"), std::string(".t.pfw"), std::string("../t.pfw"),
        std::string("/etc/t.pfw"), std::string("a/b.pfw"), std::string("t.txt"),
        std::string("t.pfw\0x", 7) + std::string(1, 'x'), std::string("t"), std::string("t.gz"),
        std::string(252, 'x') + ".pfw", std::string(300, 'x')}) {
    CAPTURE(name);
    // The name with a NUL inside ends there, and is valid.
    if (name.find('\0') != name.npos) continue;
    const char* what = with_name(name);
    REQUIRE(what != nullptr);
    CHECK(std::string(what) == "its trace has an impossible name");
  }
}

TEST_CASE("a file truncated anywhere is rejected or adopted, never read past its end") {
  const std::string good = good_image();
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{8}, sizeof(SpoolHead), kPage, kFixedSize - 1, kFixedSize,
        kFixedSize + 1, kFixedSize + kPage, good.size() - kPage, good.size() - 1}) {
    CAPTURE(size);
    const Image image(good.substr(0, size));
    const char* what = nullptr;
    CHECK(Spool::adopt(image.data(), image.size(), "/x/s.spool", &what) == nullptr);
    CHECK(what != nullptr);
  }
}

TEST_CASE("a path that is too long is rejected") {
  const Image image(good_image());
  const char* what = nullptr;
  CHECK(Spool::adopt(image.data(), image.size(), std::string(4096, 'p').c_str(), &what) == nullptr);
  CHECK(std::string(what) == "its path is too long");
}

TEST_CASE("damage inside one chunk costs that chunk only") {
  const std::string good = good_image();
  SUBCASE("more committed than fits") {
    const Image image(good);
    image.chunk(kChunkAt).committed.store(~0ULL);
    adopt(image);
    CHECK(image.chunk(kChunkAt).committed.load() == kSmallChunk - sizeof(ChunkHead));
  }
  SUBCASE("more drained than committed") {
    const Image image(good);
    image.chunk(kChunkAt).drained.store(~0ULL);
    adopt(image);
    CHECK(image.chunk(kChunkAt).drained.load() == 3 * kSpan);
  }
  SUBCASE("another size") {
    for (const std::uint32_t size : {0u, 1u, 64u, kSmallChunk - 8, kSmallChunk * 2, ~0u}) {
      const Image image(good);
      image.chunk(kChunkAt).size = size;
      adopt(image);
      CHECK(image.chunk(kChunkAt).size == kSmallChunk);
      CHECK(image.chunk(kChunkAt).committed.load() == 0);
      CHECK(image.head().lost.load() == 1);
      CHECK(image.chunk(kNamesAt).committed.load() > 0);
    }
  }
  SUBCASE("an invalid state") {
    const Image image(good);
    image.chunk(kChunkAt).state.store(static_cast<dft::buffer::ChunkState>(99));
    adopt(image);
    CHECK(state_of(image.chunk(kChunkAt)) == ChunkState::kFull);
  }
  SUBCASE("an invalid compression level") {
    const Image image(good);
    image.head().compression_level = 77;
    adopt(image);
    CHECK(image.head().compression_level <= 3);
  }
}

TEST_CASE("an adopted spool has its names read from the start") {
  const Image image(good_image());
  image.chunk(kNamesAt).drained.store(image.chunk(kNamesAt).committed.load());
  adopt(image);
  CHECK(image.chunk(kNamesAt).drained.load() == 0);
}

TEST_CASE("overlapping segments never make a chunk larger than its own") {
  // One large and one small segment, the small one then moved into the end of the large one.
  const TemporaryDirectory directory;
  Spool* made = fixture::make_spool(directory / "s.spool", "t.pfw");
  REQUIRE(made != nullptr);
  REQUIRE(fixture::grow(*made, 1 << 20, false));
  const std::string bytes = fixture::read_file(directory / "s.spool");
  made->retire(true);
  const Image image(bytes);
  SpoolHead& head = image.head();
  REQUIRE(head.segments.load() == 2);
  const auto large = head.segment[1];
  head.segment[0] = large;
  head.segment[1] = {large.offset + large.chunk_size - kSmallChunk, kSmallChunk, 1};
  auto* inner = new (image.data() + head.segment[1].offset) ChunkHead{};
  inner->size = large.chunk_size;
  inner->committed.store(large.chunk_size);
  fixture::set_state(*inner, ChunkState::kFull);
  const char* what = nullptr;
  Spool* spool = Spool::adopt(image.data(), image.size(), "/x/s.spool", &what);
  if (spool == nullptr) return;  // rejecting it is fine as well
  spool->each_chunk([&](ChunkHead& chunk, std::uint64_t offset) {
    CHECK(offset + chunk.size <= image.size());
    CHECK(chunk.committed.load() <= chunk.size - sizeof(ChunkHead));
  });
}

TEST_CASE("an intent is applied only if it is committed and not applied yet") {
  const std::string good = good_image();
  const auto with = [&](std::uint64_t intended, std::uint64_t done, std::uint64_t applied,
                        std::uint64_t entry_offset, std::uint64_t drained) {
    const Image image(good);
    SpoolHead& head = image.head();
    head.trace_size = 500;
    head.intent.from = 500;
    head.intent.to = 900;
    head.intent.lines = 3;
    head.intent.entries = 1;
    head.intent.entry[0] = {entry_offset, drained};
    head.intent_number.store(intended);
    head.done_number.store(done);
    head.applied_number.store(applied);
    adopt(image);
    CHECK(head.applied_number.load() == intended);
    return std::pair{head.trace_size, image.chunk(kChunkAt).drained.load()};
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  CHECK(with(4, 3, 3, kChunkAt, 96) == Pair{500, 0});      // announced, not in the file
  CHECK(with(4, 4, 3, kChunkAt, 96) == Pair{900, 96});     // committed, not applied
  CHECK(with(4, 4, 4, kChunkAt, 96) == Pair{500, 0});      // applied: the chunk's own value counts
  CHECK(with(4, 4, 3, kChunkAt + 8, 96) == Pair{900, 0});  // no such chunk
  CHECK(with(4, 4, 3, ~0ULL, 96) == Pair{900, 0});
  CHECK(with(4, 4, 3, kChunkAt, ~0ULL) == Pair{900, 144});  // never beyond what is committed
}
