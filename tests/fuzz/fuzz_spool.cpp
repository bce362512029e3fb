// Fuzzes recovery with a tampered spool: adopted or rejected, never a crash, and the output is
// whole lines in the given directory.
//
// The input is a list of patches to a small good spool, so that mutations reach past the first
// check: 4 bytes of position, 1 byte of length, the bytes.

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../unit/support/strict_json.hpp"
#include "base/message.hpp"
#include "buffer/spool.hpp"
#include "record/event.hpp"
#include "sink/sink.hpp"
#include "sink/trace_file.hpp"

namespace {

using dft::buffer::ChunkHead;
using dft::buffer::ChunkState;
using dft::buffer::kFixedSize;
using dft::buffer::kPage;
using dft::buffer::kSmallChunk;
using dft::buffer::SpoolHead;

constexpr std::uint32_t kChunks = 4;
constexpr std::size_t kChunksAt = kFixedSize + kPage;
constexpr std::size_t kSize = kChunksAt + kChunks * kSmallChunk;

void append(std::string& to, const void* from, std::size_t size) {
  to.append(static_cast<const char*>(from), size);
  to.resize(dft::record::padded(to.size()));
}

std::string names() {
  std::string bytes;
  std::uint32_t id = 0;
  for (const std::string_view text : {"work", "APP", "key", "a\"\n", "n|P|#f|+c"}) {
    const dft::buffer::NameRecord head{++id, static_cast<std::uint32_t>(text.size())};
    std::string one(reinterpret_cast<const char*>(&head), sizeof head);
    one += text;
    append(bytes, one.data(), one.size());
  }
  return bytes;
}

// One record of each kind, with one argument of each type, and a call.
std::string records() {
  using dft::record::ArgType;
  std::string bytes;
  for (std::uint8_t kind = 1; kind <= 7; ++kind) {
    std::string args;
    for (std::uint8_t type = kind > 3 ? 4 : 1; type <= 7; ++type) {
      const bool text = dft::record::has_bytes(static_cast<ArgType>(type));
      const dft::record::Arg arg{3, static_cast<ArgType>(type), {}, text ? 5u : 42u};
      append(args, &arg, sizeof arg);
      if (text) append(args, "\"\xff\n\\x", 5);
    }
    dft::record::Head head{};
    head.size = static_cast<std::uint32_t>(sizeof head + args.size());
    head.kind = static_cast<dft::record::Kind>(kind);
    head.level = 1;
    head.name = 1;
    head.category = 2;
    head.id = kind;
    head.start = 1000u * kind;
    head.duration = 10;
    append(bytes, &head, sizeof head);
    bytes += args;
  }
  constexpr std::uint64_t kWords[] = {1, 42, 7};  // parent, file, count
  dft::record::Call call{};
  call.size = sizeof call + sizeof kWords;
  call.kind = dft::record::Kind::kCall;
  call.flags = dft::record::kNested;
  call.level = 2;
  call.shape = 5;
  call.id = 8;
  call.start = 8000;
  call.duration = 10;
  append(bytes, &call, sizeof call);
  append(bytes, kWords, sizeof kWords);
  return bytes;
}

void fill_chunk(std::byte* image, std::uint32_t index, ChunkState state, const std::string& bytes) {
  auto* chunk = new (image + kChunksAt + index * kSmallChunk) ChunkHead{};
  chunk->size = kSmallChunk;
  chunk->thread.store(70 + index);
  chunk->sequence.store(index);
  chunk->state.store(state);
  chunk->committed.store(bytes.size());
  std::memcpy(dft::buffer::payload(*chunk), bytes.data(), bytes.size());
}

void build(std::byte* image) {
  std::memset(image, 0, kSize);
  auto* head = new (image) SpoolHead{};
  std::memcpy(head->magic, dft::buffer::kMagic, sizeof head->magic);
  head->version = dft::buffer::kVersion;
  head->head_size = sizeof(SpoolHead);
  head->ready.store(1);
  head->time_divisor_log10 = 3;
  head->owner.pid = 7;
  std::strcpy(head->trace_name, "t.pfw");
  head->preamble_offset = kFixedSize;
  std::strcpy(reinterpret_cast<char*>(image + kFixedSize), "[\n");
  head->preamble_size = 2;
  head->next_id.store(100);
  head->segments.store(2);
  head->segment[0] = {kChunksAt, kSmallChunk, 3};
  head->segment[1] = {kChunksAt + 3 * kSmallChunk, kSmallChunk, 1};
  auto* line = reinterpret_cast<dft::record::ClockMap*>(image + dft::buffer::kClockMapOffset);
  line->count = 2;
  line->knots[0] = {0, 1000, std::uint64_t{1} << 32};
  line->knots[1] = {500, 1500, std::uint64_t{1} << 31};
  fill_chunk(image, 0, ChunkState::kNames, names());
  fill_chunk(image, 1, ChunkState::kOwned, records());
  fill_chunk(image, 2, ChunkState::kFull, records() + records());
  fill_chunk(image, 3, ChunkState::kFree, {});
}

void patch(std::byte* image, const std::uint8_t* data, std::size_t size) {
  for (std::size_t at = 0; at + 5 < size;) {
    std::uint32_t place = 0;
    std::memcpy(&place, data + at, sizeof place);
    const std::size_t length = std::min<std::size_t>(data[at + 4], size - at - 5);
    // Half of the positions are in the spool's head and the chunk heads, where a byte matters most.
    std::size_t to = (place >> 3) % kSize;
    if ((place & 1) != 0) {
      to = (place & 6) != 0
               ? (place >> 3) % sizeof(SpoolHead)
               : kChunksAt + (place >> 3) % kChunks * kSmallChunk + (place >> 5) % 1024;
    }
    std::memcpy(image + to, data + at + 5, std::min(length, kSize - to));
    at += 5 + length;
  }
}

class Workspace {
 public:
  Workspace() {
    if (::mkdtemp(path_) == nullptr) std::abort();
    dft::say_into("/dev/null");
    image_ = static_cast<std::byte*>(dft::sys::map_private(kSize));
    if (image_ == nullptr) std::abort();
  }
  ~Workspace() {
    check_and_clear();
    ::rmdir(path_);
  }
  const char* path() const { return path_; }
  std::byte* image() const { return image_; }

  // Every resulting file is a trace of whole lines.
  void check_and_clear() {
    DIR* list = ::opendir(path_);
    if (list == nullptr) std::abort();
    while (const dirent* entry = ::readdir(list)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string file = std::string(path_) + "/" + entry->d_name;
      std::string text(1 << 20, '\0');
      const long got = dft::sys::read_file(file.c_str(), text.data(), text.size());
      if (got <= 0) std::abort();  // never an empty file
      // The head may claim compression for any name.
      if (!text.starts_with("\x1f\x8b"))
        check(std::string_view(text).substr(0, static_cast<std::size_t>(got)));
      ::unlink(file.c_str());
    }
    ::closedir(list);
  }

 private:
  void check(std::string_view text) const {
    // The preamble comes from the input, with our "[" if it has none; the lines after it are ours.
    const auto& head = *reinterpret_cast<const SpoolHead*>(image_);
    if (text.back() != '\n') std::abort();
    const std::string_view preamble(reinterpret_cast<const char*>(image_ + kFixedSize),
                                    head.preamble_size);
    if (text.starts_with("[\n") && text.substr(2).starts_with(preamble)) text.remove_prefix(2);
    if (text.starts_with(preamble)) text.remove_prefix(preamble.size());
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      if (!json::valid(text.substr(0, end))) std::abort();
      text.remove_prefix(end + 1);
    }
  }

  char path_[32] = "/dev/shm/dft_fuzz_XXXXXX";
  std::byte* image_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Workspace workspace;
  build(workspace.image());
  patch(workspace.image(), data, size);
  const char* what = nullptr;
  dft::buffer::Spool* spool =
      dft::buffer::Spool::adopt(workspace.image(), kSize, "/dev/shm/fuzz.spool", &what);
  if ((spool == nullptr) == (what == nullptr)) std::abort();
  if (spool == nullptr) return 0;
  // As the recoverer continues from here.
  SpoolHead& head = spool->head();
  spool->clock_map().settle(false);
  const int error =
      dft::sink::cut_back(workspace.path(), head.trace_name, {head.trace_inode, head.trace_size});
  if (error != 0) head.trace_size = head.trace_lines = 0;
  dft::sink::Sink* sink = dft::sink::Sink::create(*spool, workspace.path(), 4096);
  if (sink == nullptr) std::abort();
  (void)sink->finish({.recovered = true});
  workspace.check_and_clear();
  sink->discard();
  spool->discard();
  return 0;
}
