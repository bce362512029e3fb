// The spool on disk: what one process image has recorded and not yet written out, in a file that
// outlives it. Mapped by its owner; read by recoverers after the owner's death.
// See docs/design/file-format.md.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "record/clock.hpp"
#include "record/event.hpp"

namespace dft::buffer {

inline constexpr char kMagic[8] = {'D', 'F', 'T', 'S', 'P', 'O', 'O', 'L'};
inline constexpr std::uint32_t kVersion = 4;
// Of the layout, whatever the pages of the machine are; theirs is sys::page_size().
inline constexpr std::size_t kPage = 4096;

// A thread's first chunk is small, so that a thousand threads cost little. Later ones are large,
// but small against an L2 cache, so that recording does not evict the program's data.
inline constexpr std::uint32_t kSmallChunk = 8 << 10;
inline constexpr std::uint32_t kLargeChunk = 64 << 10;
// A process may have this many (2 MiB) before its threads wait for the writer.
inline constexpr std::uint32_t kMostLargeChunks = 32;
inline constexpr std::uint32_t kMaxSegments = 128;
inline constexpr std::uint32_t kMaxBatch = 16;

enum class ChunkState : std::uint32_t {
  kFree = 0,
  kOwned = 1,  // a thread appends to it
  kFull = 2,   // no thread appends any more; free again once drained
  kNames = 3,  // holds NameRecords, kept as long as the spool
};

// The owner's fields and the drainer's are on separate cache lines: one thread writes each.
struct alignas(64) ChunkHead {
  std::atomic<ChunkState> state;
  std::uint32_t size;  // of the whole chunk, this head included
  std::atomic<std::uint32_t> thread;
  // A record is being written: closing the spool waits for it.
  std::atomic<std::uint32_t> busy;
  // Order in which chunks were taken.
  std::atomic<std::uint64_t> sequence;
  // Bytes after the head that hold whole records.
  std::atomic<std::uint64_t> committed;
  // How many of the committed bytes are in the trace file.
  alignas(64) std::atomic<std::uint64_t> drained;
};
static_assert(sizeof(ChunkHead) == 128);

struct Segment {
  std::uint64_t offset;  // in the file
  std::uint32_t chunk_size;
  std::uint32_t chunks;
};

// One interned string; ids start at 1.
struct NameRecord {
  std::uint32_t id;
  std::uint32_t length;  // bytes follow, padded to 8
};

// Identifies the process that recorded this, well enough for another one to check if it still runs.
struct Owner {
  char host[256];
  char boot[40];
  std::uint64_t pid_namespace;
  std::uint64_t start_time;  // of the process, in clock ticks since boot
  std::uint32_t pid;
  std::uint32_t user;
};

// What the drainer is about to do. Written before the trace file is touched, so that after a
// death midway the file is cut back to `from` and the same records are written again: none
// lost, none duplicated.
struct Intent {
  std::uint64_t from;      // length of the trace file before
  std::uint64_t to;        // and after
  std::uint64_t lines;     // trace_lines afterwards
  std::uint64_t metadata;  // trace_metadata afterwards
  std::uint64_t files;     // trace_files afterwards
  std::uint64_t lost;      // lost_written afterwards
  std::uint32_t entries;
  std::uint32_t ends;  // 1: the block contains the end record
  struct IntentEntry {
    std::uint64_t chunk_offset;  // in the spool file
    std::uint64_t drained;
  } entry[kMaxBatch];
};

enum HeadFlag : std::uint32_t {
  kCompressed = 1,
  kNoThreadIds = 2,
  kEnded = 4,    // the end record is written, or not wanted because exec continues the trace
  kCounted = 8,  // the run's totals include this process
};

struct SpoolHead {
  char magic[8];
  std::uint32_t version;
  std::uint32_t head_size;
  std::atomic<std::uint32_t> ready;  // 1 once the head and the preamble are complete
  std::uint32_t flags;
  std::uint64_t run;
  std::uint64_t host_hash;
  std::uint32_t time_divisor_log10;  // nanoseconds to the trace's unit: 0, 3, 6 or 9
  std::uint32_t compression_level;
  // Key that a spool pointer to this file must name; 0 without one.
  std::uint64_t pointer_key;
  Owner owner;
  // Base name of this file when it was mapped: /proc/<pid>/maps may keep showing it.
  char mapped_name[64];
  // Base name of the trace file, in the directory of the spool or of its spool pointer.
  char trace_name[256];
  std::uint64_t preamble_offset;  // text that opens the trace file
  std::uint64_t preamble_size;
  std::uint64_t preamble_lines;
  std::atomic<std::uint64_t> heartbeat;  // wall-clock seconds of the last sign of life
  std::atomic<std::uint64_t> next_id;
  std::atomic<std::uint64_t> next_sequence;
  std::atomic<std::uint64_t> lost;  // events that could not be kept
  std::uint64_t lost_written;       // how many of those the trace file already reports
  // Bytes of the trace file that are whole and ours; 0 before the file exists.
  std::uint64_t trace_size;
  std::uint64_t trace_inode;
  std::uint64_t trace_lines;      // written by this spool; 0: not even the preamble
  std::uint64_t trace_metadata;   // lines that are not events
  std::uint64_t trace_files;      // FH lines of intercepted calls
  std::uint64_t reported_events;  // already in the run's totals
  std::uint64_t reported_files;
  std::atomic<std::uint64_t> intent_number;
  std::atomic<std::uint64_t> done_number;     // the file holds the block
  std::atomic<std::uint64_t> applied_number;  // the chunks are marked as drained
  Intent intent;
  std::atomic<std::uint32_t> segments;
  std::uint32_t file_mode;  // permissions of the trace file
  Segment segment[kMaxSegments];
};
static_assert(sizeof(SpoolHead) <= kPage);

// Events and files in the trace that the run's totals do not include yet.
inline std::uint64_t unreported_events(const SpoolHead& head) noexcept {
  const std::uint64_t other = head.trace_metadata + head.reported_events;
  return head.trace_lines > other ? head.trace_lines - other : 0;
}
inline std::uint64_t unreported_files(const SpoolHead& head) noexcept {
  return head.trace_files > head.reported_files ? head.trace_files - head.reported_files : 0;
}
inline void set_reported(SpoolHead& head) noexcept {
  head.reported_events += unreported_events(head);
  head.reported_files += unreported_files(head);
}

inline constexpr std::size_t kClockMapOffset = kPage;
inline constexpr std::size_t kClockMapSize = (sizeof(record::ClockMap) + kPage - 1) / kPage * kPage;
inline constexpr std::size_t kFixedSize = kClockMapOffset + kClockMapSize;

// Other processes read this layout: increase kVersion with every change.
static_assert(kVersion == 4 && sizeof(SpoolHead) == 3208 && kFixedSize == 16384);

}  // namespace dft::buffer
