#include "intercept/page_faults.hpp"

#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "buffer/names.hpp"
#include "buffer/span.hpp"
#include "intercept/call_args.hpp"
#include "intercept/call_record.hpp"
#include "intercept/fault_rings.hpp"
#include "intercept/touched_pages.hpp"
#include "intercept/vfork.hpp"
#include "session/session.hpp"
#include "sink/writer.hpp"

extern "C" char __libc_single_threaded __attribute__((weak));  // glibc 2.32 and later

namespace dft::intercept {
namespace {

using record::ArgType;

// Faults of one thread on one file, one after the other.
struct FaultRun {
  File* file;  // null: a free place
  std::uint32_t thread;
  std::uint32_t faults;
  std::uint32_t major;
  std::uint64_t first_offset;
  std::uint64_t last_offset;
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::uint64_t waited_ns;     // in major faults
  std::uint64_t last_address;  // of the fault that began last
  std::uint64_t last_began;
};
// A pause this long ends a run, and so does its length: a run is to lie within a step. One that has
// been idle for longer is over, even if the kernel was still reading its last page.
constexpr std::uint64_t kPauseNs = 5'000'000;
constexpr std::uint64_t kLongestNs = 50'000'000;
constexpr std::uint64_t kIdleNs = 500'000'000;

constexpr std::size_t kMostOpen = 64;
constexpr std::size_t kMostDone = 512;
constexpr std::size_t kEnough = 64;  // runs that are worth a block
constexpr std::size_t kSamples = 1024;
constexpr std::size_t kMostLanes = 256;

// Looked up and interned on a thread of the program: the writer's must not.
struct {
  std::uint32_t category;
  std::uint32_t run;
  std::uint32_t touched;
} g_names_of;

Lock g_lock;  // of everything below
FaultRun g_open[kMostOpen];
FaultRun g_done[kMostDone];
std::size_t g_done_count = 0;
std::uint64_t g_done_since = 0;
std::uint64_t g_lost = 0;       // samples, since the last run that says so
std::uint64_t g_uncounted = 0;  // faults in runs for which there was no room
std::int64_t g_ahead_ns = 0;    // of the trace's clock before the wall's
MappedRange g_ranges[kMostMappings + kMostGone];
FaultSample g_samples[kSamples];
std::uint32_t g_lanes[kMostLanes];  // threads whose lane has its name in the trace
std::size_t g_lane_count = 0;
File* g_files[kMostLanes];  // files that were announced by these records
std::size_t g_file_count = 0;
std::uint64_t g_lanes_in = 0;  // the generation of that trace
int g_process = 0;             // whose rings these are
std::uint32_t g_looks = 0;

std::atomic<bool> g_wanted{false};
std::atomic<std::uint32_t> g_watching{0};  // futex word: faults are sampled

// ---- from samples to runs

// The mapping at that time: addresses are used again.
const MappedRange* range_at(std::size_t count, const FaultSample& sample) {
  static std::size_t last = 0;
  const auto holds = [&](const MappedRange& range) {
    return sample.address >= range.begin && sample.address < range.end &&
           sample.time >= range.made_ns && sample.time <= range.gone_ns;
  };
  if (last < count && holds(g_ranges[last])) return &g_ranges[last];
  for (std::size_t i = 0; i < count; ++i) {
    if (!holds(g_ranges[i])) continue;
    last = i;
    return &g_ranges[i];
  }
  return nullptr;
}

void finish(FaultRun& run) {
  if (g_done_count < kMostDone) {
    if (g_done_count == 0) g_done_since = run.end_ns;
    g_done[g_done_count++] = run;
  } else {
    g_uncounted += run.faults;
  }
  run.file = nullptr;
}

FaultRun& run_for(File* file, const FaultSample& sample) {
  FaultRun* place = nullptr;
  FaultRun* oldest = &g_open[0];
  for (FaultRun& run : g_open) {
    if (run.file == file && run.thread == sample.thread) {
      place = &run;
      break;
    }
    if (run.file == nullptr) place = &run;
    if (run.end_ns < oldest->end_ns) oldest = &run;
  }
  if (place == nullptr) place = oldest;
  // The end of a fault belongs to its beginning, however long it took.
  const bool is_its_end = sample.finished && place->last_address == sample.address;
  const bool is_near =
      sample.time < place->end_ns + kPauseNs && sample.time < place->begin_ns + kLongestNs;
  if (place->file == file && place->thread == sample.thread && (is_its_end || is_near))
    return *place;
  if (place->file != nullptr) finish(*place);
  *place = {};
  place->file = file;
  place->thread = sample.thread;
  place->begin_ns = sample.time;
  return *place;
}

void add(const MappedRange& range, const FaultSample& sample) {
  const std::uint64_t page = sys::page_size();
  const std::uint64_t offset = (range.offset + (sample.address - range.begin)) / page * page;
  FaultRun& run = run_for(range.file, sample);
  if (run.end_ns < sample.time) run.end_ns = sample.time;
  if (sample.finished) {
    ++run.major;
    if (run.faults == 0) {  // its beginning is in a run before, or was lost
      run.faults = 1;
      run.first_offset = run.last_offset = offset;
    } else if (run.last_address == sample.address && sample.time > run.last_began) {
      run.waited_ns += sample.time - run.last_began;
    }
    return;
  }
  if (run.faults++ == 0) run.first_offset = offset;
  run.last_offset = offset;
  run.last_address = sample.address;
  run.last_began = sample.time;
}

void take_all() {
  const std::size_t ranges = copy_mappings(g_ranges);
  for (std::size_t got = kSamples; got == kSamples;) {
    got = take_samples(g_samples, kSamples, g_lost);
    for (std::size_t i = 0; i < got; ++i)
      if (const MappedRange* range = range_at(ranges, g_samples[i])) add(*range, g_samples[i]);
  }
}

void finish_idle(std::uint64_t now, bool all) {
  for (FaultRun& run : g_open)
    if (run.file != nullptr && (all || run.end_ns + kIdleNs < now)) finish(run);
}

// ---- from runs to records

// Records of one chunk, which the drainer gets when it is complete.
class ChunkWriter {
 public:
  ChunkWriter(buffer::Spool& spool, buffer::ChunkHead& chunk) : spool_(spool), chunk_(chunk) {
    chunk_.busy.store(1);
  }
  ~ChunkWriter() {
    chunk_.committed.store(used_, std::memory_order_release);
    chunk_.busy.store(0, std::memory_order_release);
    chunk_.state.store(buffer::ChunkState::kFull, std::memory_order_release);
  }
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  [[nodiscard]] bool has_room(std::size_t size) const {
    return buffer::room(chunk_) - used_ >= size;
  }
  void begin(record::Kind kind, std::uint8_t flags, std::uint64_t id) {
    head_ = {};
    head_.kind = kind;
    head_.flags = flags;
    head_.id = id;
    head_.level = 1;
    size_ = sizeof head_;
  }
  record::Head& head() { return head_; }
  void put(std::uint32_t key, ArgType type, std::uint64_t word) {
    const record::Arg arg{key, type, {}, word};
    std::memcpy(at(), &arg, sizeof arg);
    size_ += sizeof arg;
  }
  void put(Key key, ArgType type, std::uint64_t word) {
    put(g_ids.key[static_cast<std::size_t>(key)], type, word);
  }
  void put_text(const char* text, std::size_t length) {
    put(0u, ArgType::kString, length);
    std::memset(at(), 0, record::padded(length));
    std::memcpy(at(), text, length);
    size_ += record::padded(length);
  }
  void commit() {
    head_.size = static_cast<std::uint32_t>(size_);
    std::memcpy(buffer::payload(chunk_) + used_, &head_, sizeof head_);
    used_ += size_;
  }
  std::uint64_t new_id() { return spool_.head().next_id.fetch_add(1); }

 private:
  std::byte* at() { return buffer::payload(chunk_) + used_ + size_; }

  buffer::Spool& spool_;
  buffer::ChunkHead& chunk_;
  record::Head head_{};
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

constexpr std::size_t kLargestRecord = sizeof(record::Head) + 10 * sizeof(record::Arg);

std::uint32_t lane_of(std::uint32_t thread) {
  return thread + (record::kLastLane << record::kThreadBits);
}

void name_lane(ChunkWriter& out, std::uint32_t thread) {
  for (std::size_t i = 0; i < g_lane_count; ++i)
    if (g_lanes[i] == thread) return;
  if (g_lane_count == kMostLanes) return;
  g_lanes[g_lane_count++] = thread;
  char digits[16];
  std::size_t count = 0;
  for (std::uint32_t left = thread; left != 0; left /= 10)
    digits[count++] = static_cast<char>('0' + left % 10);
  char name[40];
  for (std::size_t i = 0; i < count; ++i) name[i] = digits[count - 1 - i];
  constexpr char kRest[] = " page faults";
  std::memcpy(name + count, kRest, sizeof kRest);
  out.begin(record::Kind::kThread, record::kForeign, out.new_id());
  out.put(0u, ArgType::kUint, lane_of(thread));
  out.put_text(name, count + sizeof kRest - 1);
  out.commit();
}

// The record of the call that mapped the file may be written later than these, or by a parent.
bool announce_file(ChunkWriter& out, File& file) {
  for (std::size_t i = 0; i < g_file_count; ++i)
    if (g_files[i] == &file) return true;
  if (file.length == 0) return true;
  if (!out.has_room(kLargestRecord + record::padded(file.length))) return false;
  out.begin(record::Kind::kFile, 0, file.hash);
  out.put_text(file.path, file.length);
  out.commit();
  if (g_file_count < kMostLanes) g_files[g_file_count++] = &file;
  return true;
}

std::uint64_t in_trace(std::uint64_t wall_ns) {
  return wall_ns + static_cast<std::uint64_t>(g_ahead_ns);
}

bool write_run(ChunkWriter& out, const FaultRun& run) {
  if (!out.has_room(3 * kLargestRecord) || !announce_file(out, *run.file) ||
      !out.has_room(2 * kLargestRecord)) {
    return false;
  }
  name_lane(out, run.thread);
  out.begin(record::Kind::kSpan, record::kForeign, out.new_id());
  record::Head& head = out.head();
  head.name = g_names_of.run;
  head.category = g_names_of.category;
  head.start = in_trace(run.begin_ns);
  head.duration = run.end_ns - run.begin_ns;
  out.put(0u, ArgType::kUint, lane_of(run.thread));
  out.put(Key::fhash, ArgType::kHash, run.file->hash);
  out.put(Key::offset, ArgType::kInt, run.first_offset);
  out.put(Key::last_offset, ArgType::kInt, run.last_offset);
  out.put(Key::faults, ArgType::kInt, run.faults);
  if (run.major != 0) {
    out.put(Key::major, ArgType::kInt, run.major);
    out.put(Key::major_us, ArgType::kInt, run.waited_ns / 1000);
  }
  const std::uint64_t unseen = g_lost + g_uncounted;
  if (unseen != 0) out.put(Key::unseen, ArgType::kInt, unseen);
  g_lost = g_uncounted = 0;
  out.commit();
  return true;
}

// Puts the finished runs into a chunk of the spool. True if there was one, and all fit.
bool write_runs() {
  buffer::Spool* spool = buffer::g_spool.load(std::memory_order_acquire);
  const std::uint64_t generation = buffer::g_guard.load()->generation.load();
  if (spool == nullptr || generation == 0) return false;
  if (g_lanes_in != generation) {
    g_lanes_in = generation;
    g_lane_count = 0;
    g_file_count = 0;
  }
  const auto self = static_cast<std::uint32_t>(sys::thread_id());
  buffer::ChunkHead* chunk = spool->take(kLargestRecord, false, self);
  if (chunk == nullptr) chunk = spool->take(kLargestRecord, true, self);
  if (chunk == nullptr) return false;
  // As in next_chunk() and enter(): one of this and stop_generation() sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::size_t written = 0;
  {
    ChunkWriter out(*spool, *chunk);
    if (buffer::g_guard.load()->generation.load() == generation)
      while (written < g_done_count && write_run(out, g_done[written])) ++written;
  }
  std::memmove(g_done, g_done + written, (g_done_count - written) * sizeof *g_done);
  g_done_count -= written;
  return g_done_count == 0;
}

// ---- on the writer's thread

// A thread of the program asks what it has touched, because it must not open files itself.
struct {
  Lock lock;  // one asks at a time
  std::uintptr_t begin;
  std::uintptr_t end;
  TouchedPages answer;
  std::atomic<std::uint32_t> state;
} g_question;
enum : std::uint32_t { kNothing, kAsked, kAnswered };

void answer() {
  if (g_question.state.load(std::memory_order_acquire) != kAsked) return;
  g_question.answer = count_touched(g_question.begin, g_question.end);
  std::uint32_t asked = kAsked;
  if (g_question.state.compare_exchange_strong(asked, kAnswered))
    sys::futex_wake(&g_question.state, 1);
}

// Even where the kernel samples no faults, the thread answers.
bool watch_begins() noexcept {
  {
    const Locked locked(g_lock);
    g_process = sys::process_id();
    open_fault_rings();
  }
  g_watching.store(1);
  sys::futex_wake(&g_watching, 1 << 20);
  return true;
}

bool watch_looks() noexcept {
  answer();
  const Locked locked(g_lock);
  constexpr std::uint32_t kLooksBetweenThreads = 20;
  if (++g_looks % kLooksBetweenThreads == 0) follow_threads();
  take_all();
  const std::uint64_t now = wall_clock_ns();
  finish_idle(now, false);
  constexpr std::uint64_t kWaitNs = 1'000'000'000;
  if (g_done_count < kEnough && (g_done_count == 0 || now < g_done_since + kWaitNs)) return false;
  const std::size_t before = g_done_count;
  write_runs();
  return g_done_count != before;
}

void watch_ends() noexcept {
  const Locked locked(g_lock);
  take_all();
  close_fault_rings();
  g_watching.store(0);
}

constexpr sink::Watch kWatch{watch_begins, watch_looks, watch_ends};

// ---- on the program's threads

std::int64_t measure_ahead() {
  const auto ours = static_cast<std::int64_t>(session::now_ns());
  return ours == 0 ? 0 : ours - static_cast<std::int64_t>(wall_clock_ns());
}

bool is_single_threaded() {
  return &__libc_single_threaded != nullptr && __libc_single_threaded != 0;
}

// Mappings below this size are not worth a wake-up of another thread.
constexpr std::size_t kWorthAsking = std::size_t{1} << 20;
// How long a call that unmaps waits for the answer, which usually takes 0.1 ms: per MiB that it
// unmaps, and at most.
constexpr long kPatienceNs = 1'000'000;
constexpr long kMostPatienceNs = 30'000'000;
constexpr long kPatienceAtBeginNs = 20'000'000;
constexpr long kPatienceAtEndNs = 50'000'000;

constexpr std::uint32_t kMostUnanswered =
    4;  // one after the other: a thread that gets no processor

TouchedPages ask(std::uintptr_t begin, std::uintptr_t end, long patience_ns) {
  static std::atomic<std::uint32_t> unanswered{0};
  if (is_single_threaded()) return count_touched(begin, end);
  if (end - begin < kWorthAsking || unanswered.load() >= kMostUnanswered) return {};
  const Locked one_at_a_time(g_question.lock);
  g_question.begin = begin;
  g_question.end = end;
  g_question.state.store(kAsked, std::memory_order_release);
  session::watch(kWatch);
  session::ring_writer();
  sys::futex_wait(&g_question.state, kAsked, patience_ns);
  std::uint32_t state = kAsked;
  if (g_question.state.compare_exchange_strong(state, kNothing)) {
    unanswered.fetch_add(1);
    return {};
  }
  unanswered.store(0);
  return g_question.answer;
}

// What a mapping, or a part of one, has been used for.
void record_touched(const MappedRange& range, long patience_ns) {
  const TouchedPages touched = ask(range.begin, range.end, patience_ns);
  buffer::ThreadState* t = buffer::this_thread();
  if (!touched.known || t == nullptr) return;
  CallArgs args;
  put_file(*t, args, Key::fhash, *range.file, -1);  // a forked child's trace may not know it
  args.put(Key::offset, ArgType::kInt, range.offset);
  args.put(Key::length, ArgType::kInt, range.end - range.begin);
  args.put(Key::touched, ArgType::kInt, touched.bytes);
  args.put(Key::ranges, ArgType::kInt, touched.ranges);
  record::Head head = buffer::make_head(*t, record::Kind::kSpan, 0, record::ticks(), 0);
  head.name = g_names_of.touched;
  head.category = g_names_of.category;
  buffer::write_record(t->live, head, args.bytes(), args.size());
}

// ---- at the ends of a trace

void trace_opened() {
  if (!g_wanted.load()) return;
  if (g_process != 0 && g_process != sys::process_id()) {  // a forked child
    forget_fault_rings();
    for (FaultRun& run : g_open) run.file = nullptr;
    g_done_count = 0;
    g_lost = g_uncounted = 0;
    g_process = 0;
    g_watching.store(0);
    g_question.state.store(kNothing);
  }
  if (has_mappings()) watch_mapping();
}

bool trace_closes() {
  if (!g_wanted.load()) return false;
  if (has_mappings()) {
    const std::size_t count = copy_mappings(g_ranges);
    static MappedRange mapped[kMostMappings + kMostGone];
    std::memcpy(mapped, g_ranges, count * sizeof *mapped);
    for (std::size_t i = 0; i < count; ++i) {
      if (mapped[i].gone_ns != kThere || mapped[i].reported) continue;
      mark_reported(mapped[i].begin);
      record_touched(mapped[i], kPatienceAtEndNs);
    }
  }
  const Locked locked(g_lock);
  if (g_process == sys::process_id()) take_all();
  finish_idle(0, true);
  return g_done_count != 0 && !write_runs();
}

constexpr session::Observer kObserver{trace_opened, trace_closes};

}  // namespace

void begin_page_faults(bool wanted) noexcept {
  if (!wanted) return;
  g_names_of = {buffer::g_names.id("MMAP"), buffer::g_names.id("page_faults"),
                buffer::g_names.id("touched")};
  if (g_names_of.category == 0 || g_names_of.run == 0 || g_names_of.touched == 0) return;
  g_wanted.store(true);
  session::observe(kObserver);
}

void end_page_faults() noexcept { g_wanted.store(false); }

void watch_mapping() noexcept {
  if (!g_wanted.load(std::memory_order_relaxed) || in_vfork_child()) return;
  const SlowPath slow;
  if (g_ahead_ns == 0) g_ahead_ns = measure_ahead();
  session::watch(kWatch);
  // Once per process: the program must not touch the file before anything looks.
  if (g_watching.load() == 0) sys::futex_wait(&g_watching, 0, kPatienceAtBeginNs);
}

void before_unmap(const void* at, std::size_t length) noexcept {
  if (!g_wanted.load(std::memory_order_relaxed) || in_vfork_child()) return;
  MappedRange range;
  if (!mapping_at(at, range)) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = begin + length;
  if (end < range.end) range.end = end;
  range.offset += begin - range.begin;
  range.begin = begin;
  const SlowPath slow;
  const auto size = static_cast<long>((range.end - range.begin) >> 20);
  record_touched(range,
                 size < kMostPatienceNs / kPatienceNs ? size * kPatienceNs : kMostPatienceNs);
}

}  // namespace dft::intercept
