// Turns binary records into JSON lines, for living and for dead processes alike. Called under the
// sink's lock, or by a recoverer. Treats every record as input from a hostile file.
#pragma once
#include <cstdint>
#include <string_view>

#include "buffer/layout.hpp"
#include "record/clock.hpp"
#include "record/event.hpp"
#include "sink/arg_walk.hpp"
#include "sink/line_prefix.hpp"
#include "sink/mmap_buffer.hpp"
#include "sink/name_table.hpp"
#include "sink/nesting.hpp"

namespace dft::sink {

// Enough for everything in a line except its strings.
inline constexpr std::size_t kFixedPart = 512;

struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t host_hash;
  std::uint32_t time_divisor_log10;
  bool thread_ids;
};

// What a process did in total, beyond what it recorded.
struct IoTotals {
  std::uint64_t cpu_us;      // of all its threads, including the tracer's
  std::int64_t cpu_wait_us;  // that its main thread was ready to run, and waited; -1 if unknown
  bool counted;              // calls were intercepted, and the kernel's byte counts are known
  std::uint64_t calls;
  std::uint64_t filtered;
  std::uint64_t read_seen;
  std::uint64_t read_total;
  std::uint64_t write_seen;
  std::uint64_t write_total;
  std::uint64_t storage_read;  // bytes that came from storage and not from the page cache
  // Of io_uring, that no call showed; shown unless 0.
  std::uint64_t rings;
  std::uint64_t ring_requests;
};

class Encoder {
 public:
  Encoder(const ProcessInfo& process, const record::ClockMap& clock_map,
          std::atomic<std::uint64_t>& next_id) noexcept;

  NameTable& names() noexcept { return names_; }

  enum class Result { kDone, kBadRecord, kNoMemory };
  // Appends the lines of all whole records in [from, to), which `thread` wrote. Stops at the
  // first invalid record; the lines before it stay.
  Result encode(const std::byte* from, const std::byte* to, std::uint32_t thread,
                MmapBuffer& out) noexcept;
  // Lines about the trace itself. at_ns 0: use the time of the last event.
  bool lost(std::uint64_t events, std::uint64_t at_ns, MmapBuffer& out) noexcept;
  struct End {
    std::uint64_t records;
    std::uint64_t lost;
    std::uint64_t at_ns;
    bool recovered;
    bool details;
    const IoTotals* totals = nullptr;  // null if unknown
  };
  bool end(const End& what, MmapBuffer& out) noexcept;

  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }
  void set_lines(std::uint64_t lines) noexcept { lines_ = lines; }
  // Lines that are not events, and how many of those name files.
  [[nodiscard]] std::uint64_t metadata_lines() const noexcept { return metadata_lines_; }
  [[nodiscard]] std::uint64_t files() const noexcept { return files_; }
  void free() noexcept {
    names_.free();
    lane_ends_.free();
    nesting_.free();
    prefixes_.free();
    scratch_.free();
  }
  [[nodiscard]] std::uint64_t last_time() const noexcept { return last_time_; }

 private:
  bool encode_one(const std::byte* from, const std::byte* to, MmapBuffer& out) noexcept;
  bool line(const record::Head& head, const std::byte* args, const std::byte* end,
            MmapBuffer& out) noexcept;
  struct Times {
    std::uint64_t start;
    std::uint64_t stop;
  };
  Times times_of(const record::Head& head) const noexcept;
  bool take_front(const record::Head& head, const std::byte*& args, const std::byte* end,
                  std::string_view (&names)[2]) noexcept;
  // Everything between a line's id and its time, and the meaning of a call's words.
  struct Front {
    std::string_view text;
    CallShape* shape;
  };
  bool front_of(const record::Head& head, const std::string_view (&names)[2],
                Front& front) noexcept;
  bool words(CallShape& shape, const std::byte* from, const std::byte* to,
             MmapBuffer& out) noexcept;
  char* own_line(char* p, std::string_view name, std::uint64_t id) noexcept;
  char* own_args(char* p, std::string_view phase) noexcept;
  bool metadata(const record::Head& head, const std::byte* args, const std::byte* end,
                MmapBuffer& out) noexcept;
  bool flow(record::Head head, const std::byte* args, const std::byte* end,
            MmapBuffer& out) noexcept;
  bool arguments(const std::byte* from, const std::byte* to, std::uint64_t start, bool first,
                 MmapBuffer& out) noexcept;
  bool room(MmapBuffer& out, std::size_t n) noexcept {
    return out.ensure(n) || (no_memory_ = true, false);
  }
  char* rename(char* p, std::string_view key, const std::byte* from,
               const std::byte* to) const noexcept;
  bool foreign_thread(ArgCursor& cursor, const std::byte*& args) noexcept;
  std::uint32_t own_lane(std::uint64_t start, std::uint64_t end) noexcept;
  void set_thread(std::uint32_t thread) noexcept;
  [[nodiscard]] std::uint64_t in_units(std::uint64_t ns) const noexcept;

  struct LaneEnd {
    std::uint32_t thread;
    std::uint64_t end;
  };

  ProcessInfo process_;
  const record::ClockMap& clock_map_;
  std::atomic<std::uint64_t>& next_id_;
  NameTable names_;
  LinePrefixes prefixes_;
  MmapBuffer scratch_;  // holds a prefix that is not cached
  CallShape scratch_shape_{};
  Nesting nesting_;
  MmapBuffer lane_ends_;  // of LaneEnd, for crossing spans
  std::uint64_t lines_ = 0;
  std::uint64_t metadata_lines_ = 0;
  std::uint64_t files_ = 0;
  std::uint64_t last_time_ = 0;
  bool no_memory_ = false;
  std::uint32_t thread_ = ~0u;
  char where_[64];  // ,"pid":P,"tid":T
  std::size_t where_size_ = 0;
  char host_[17] = {};
  char span_[64] = {};  // from after the duration up to the parent
  std::size_t span_size_ = 0;
};

}  // namespace dft::sink
