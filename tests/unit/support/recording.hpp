// Recording as a session sets it up, without the session: a spool, its sink and the lane hooks.
// Used by the tests of lanes and spans; the state is global, so only one at a time.
#pragma once
#include <map>

#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "sink/sink.hpp"
#include "support/fixture.hpp"

namespace fixture {

inline void commit(const buffer::Slot& slot, std::size_t size) { buffer::commit(*slot.lane, size); }

class Recording {
 public:
  explicit Recording(bool with_sink = true) {
    spool_ = buffer::Spool::create((directory_ / ".t.pfw.spool").c_str(), 512, &error_);
    REQUIRE(spool_ != nullptr);
    prepare(*spool_, "t.pfw");
    if (with_sink) g_sink = dft::sink::Sink::create(*spool_, directory_.path(), 1 << 16);
    REQUIRE(buffer::g_names.publish_to(spool_));
    buffer::g_hooks = {};
    buffer::g_hooks.begin = [] { return buffer::generation_is_live(); };
    buffer::g_hooks.make_room = [](auto...) {
      return g_sink != nullptr && g_sink->reclaim_or_drop();
    };
    buffer::g_hooks.ask_writer = [](auto...) { return false; };
    buffer::g_hooks.filled = [] { g_filled.fetch_add(1); };
    buffer::g_spool.store(spool_);
    buffer::g_on.store(true);
    g_filled.store(0);
    buffer::new_epoch();  // ids start again, as in a new process
    buffer::new_generation();
  }
  ~Recording() {
    buffer::g_on.store(false);
    buffer::stop_generation();
    buffer::g_names.publish_to(nullptr);
    buffer::g_spool.store(nullptr);
    g_sink = nullptr;
    spool_->retire(true);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  buffer::Spool& spool() { return *spool_; }
  dft::sink::Sink& sink() { return *g_sink; }
  const TemporaryDirectory& directory() { return directory_; }
  static int filled() { return g_filled.load(); }

  struct FoundRecord {
    record::Head head;
    std::string args;
    std::uint32_t thread;
  };
  // Every committed record, chunk by chunk in the order in which chunks were taken.
  std::vector<FoundRecord> records() {
    std::map<std::uint64_t, buffer::ChunkHead*> chunks;
    spool_->each_chunk([&](buffer::ChunkHead& chunk, std::uint64_t) {
      const auto state = state_of(chunk);
      if (state == buffer::ChunkState::kOwned || state == buffer::ChunkState::kFull) {
        chunks[chunk.sequence.load()] = &chunk;
      }
    });
    std::vector<FoundRecord> all;
    for (const auto& [sequence, chunk] : chunks) {
      const std::byte* data = buffer::payload(*chunk);
      for (std::uint64_t at = 0; at < chunk->committed.load();) {
        FoundRecord found{};
        std::memcpy(&found.head, data + at, sizeof found.head);
        REQUIRE(found.head.size >= sizeof found.head);
        found.args.assign(reinterpret_cast<const char*>(data + at + sizeof found.head),
                          found.head.size - sizeof found.head);
        found.thread = chunk->thread.load();
        all.push_back(found);
        at += found.head.size;
      }
    }
    return all;
  }
  std::map<std::uint64_t, record::Head> spans() {
    std::map<std::uint64_t, record::Head> by_id;
    for (const FoundRecord& found : records()) {
      if (found.head.kind == record::Kind::kSpan) by_id[found.head.id] = found.head;
    }
    return by_id;
  }

 private:
  static inline dft::sink::Sink* g_sink = nullptr;
  static inline std::atomic<int> g_filled{0};
  TemporaryDirectory directory_;
  buffer::Spool* spool_ = nullptr;
  int error_ = 0;
};

}  // namespace fixture
