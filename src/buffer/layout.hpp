// The spool on disk: what one process image has recorded and not yet written out, in a file that
// outlives it. Mapped by its owner; read by whoever finishes a dead owner's work.
// docs/design/file-format.md.
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
inline constexpr std::size_t kPage = 4096;

// A thread's first chunk is small, so that a thousand threads cost little; the following ones are
// half of a typical second-level cache's share, so that recording does not push the program's data
// out.
inline constexpr std::uint32_t kSmallChunk = 8 << 10;
inline constexpr std::uint32_t kLargeChunk = 64 << 10;
// A process in a hurry may have this many before it waits for the writer: 2 MiB.
inline constexpr std::uint32_t kMostLargeChunks = 32;
inline constexpr std::uint32_t kMaxSegments = 128;
inline constexpr std::uint32_t kMaxBatch = 16;

enum class ChunkState : std::uint32_t {
  kFree = 0,
  kOwned = 1,  // a thread appends to it
  kFull = 2,   // nobody appends any more; free again once drained
  kNames = 3,  // holds NameRecords, kept as long as the spool
};

// The owner's line and the drainer's line are apart: each is written by one thread only.
struct alignas(64) ChunkHead {
  std::atomic<ChunkState> state;
  std::uint32_t size;  // of the whole chunk, this head included
  std::atomic<std::uint32_t> thread;
  std::atomic<std::uint32_t>
      busy;  // a record is being written: whoever closes the spool waits for it
  std::atomic<std::uint64_t> sequence;             // order in which chunks were taken
  std::atomic<std::uint64_t> committed;            // bytes after the head that hold whole records
  alignas(64) std::atomic<std::uint64_t> drained;  // bytes of those that are in the trace file
};
static_assert(sizeof(ChunkHead) == 128);

struct Segment {
  std::uint64_t offset;  // in the file
  std::uint32_t chunk_size;
  std::uint32_t chunks;
};

// One interned string; ids count up from 1.
struct NameRecord {
  std::uint32_t id;
  std::uint32_t length;  // bytes follow, padded to 8
};

// Who recorded this. Enough to tell from outside whether it still runs.
struct Owner {
  char host[256];
  char boot[40];
  std::uint64_t pid_namespace;
  std::uint64_t start_time;  // of the process, in clock ticks since boot
  std::uint32_t pid;
  std::uint32_t user;
};

// What the drainer is about to do. Written before the trace file is touched, so that after a death
// in the middle the file is cut back to `from` and the same records are written again: none lost,
// none twice.
struct Intent {
  std::uint64_t from;      // length of the trace file before
  std::uint64_t to;        // and after
  std::uint64_t lines;     // trace_lines after it
  std::uint64_t metadata;  // trace_metadata after it
  std::uint64_t files;     // trace_files after it
  std::uint64_t lost;      // lost_written after it
  std::uint32_t entries;
  std::uint32_t ends;  // 1: the end record is in it
  struct Entry {
    std::uint64_t chunk_offset;  // in the spool file
    std::uint64_t drained;
  } entry[kMaxBatch];
};

enum HeadFlag : std::uint32_t {
  kCompressed = 1,
  kNoThreadIds = 2,
  kEnded = 4,    // the end record is in the trace, or not wanted: another program goes on
  kCounted = 8,  // the run's totals hold this process
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
  std::uint64_t pointer_key;  // that the note of a spool elsewhere must name; 0 without a note
  Owner owner;
  char mapped_name[64];  // base name of this file when it was mapped: the kernel may go on showing
                         // that one
  char
      trace_name[256];  // base name of the trace file, in the directory of the spool or of its note
  std::uint64_t preamble_offset;  // text that opens the trace file
  std::uint64_t preamble_size;
  std::uint64_t preamble_lines;
  std::atomic<std::uint64_t> heartbeat;  // wall seconds of the last sign of life
  std::atomic<std::uint64_t> next_id;
  std::atomic<std::uint64_t> next_sequence;
  std::atomic<std::uint64_t> lost;  // events that could not be kept
  std::uint64_t lost_written;       // of those, how many the trace file already tells of
  std::uint64_t trace_size;  // bytes of the trace file that are whole and ours; 0 before it is made
  std::uint64_t trace_inode;
  std::uint64_t trace_lines;      // that this spool has put into it; 0: not even the preamble
  std::uint64_t trace_metadata;   // of those, lines that are no events
  std::uint64_t trace_files;      // of those, FH lines of calls
  std::uint64_t reported_events;  // that the run's totals hold already
  std::uint64_t reported_files;
  std::atomic<std::uint64_t> intent_number;
  std::atomic<std::uint64_t> done_number;     // the file holds it
  std::atomic<std::uint64_t> applied_number;  // and the chunks know
  Intent intent;
  std::atomic<std::uint32_t> segments;
  std::uint32_t file_mode;  // of the trace
  Segment segment[kMaxSegments];
};
static_assert(sizeof(SpoolHead) <= kPage);

// What the trace has got from this spool and the run's totals do not hold yet.
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

// Whoever changes these changes what others read: raise kVersion.
static_assert(kVersion == 4 && sizeof(SpoolHead) == 3208 && kFixedSize == 16384);

}  // namespace dft::buffer
