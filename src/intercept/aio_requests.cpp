#include "intercept/aio_requests.hpp"

#include <algorithm>

#include "base/signals.hpp"
#include "intercept/generation_lock.hpp"
#include "intercept/vfork.hpp"

namespace dft::intercept {

thread_local constinit bool t_in_aio __attribute__((tls_model("initial-exec"))) = false;

namespace {

// Further requests in flight are not joined with their completions: their bytes are those of the
// call that collects them.
constexpr std::size_t kPartRequests = 4096;
constexpr std::size_t kParts = 16;  // each with a lock of its own

struct alignas(64) AioPart {
  GenerationLock lock;
  std::uint64_t generation = 0;
  PendingTable pending;
};
constinit AioPart g_parts[kParts];
std::atomic<bool> g_used{false};

class LockedPart {
 public:
  LockedPart(buffer::ThreadState& t, const void* block)
      : part_(g_parts[reinterpret_cast<std::uintptr_t>(block) * 0x9e3779b97f4a7c15u >> 60]) {
    enter(t);
  }
  LockedPart(buffer::ThreadState& t, AioPart& part) : part_(part) { enter(t); }
  ~LockedPart() {
    if (held_) part_.lock.unlock();
  }
  LockedPart(const LockedPart&) = delete;
  LockedPart& operator=(const LockedPart&) = delete;
  explicit operator bool() const { return held_; }
  PendingTable& pending() { return part_.pending; }

 private:
  void enter(buffer::ThreadState& t) {
    held_ = !in_vfork_child() && part_.lock.lock(t.generation);
    if (!held_ || part_.generation == t.generation) return;
    part_.pending.clear();  // of a parent process, or of another session
    part_.generation = t.generation;
  }
  AioPart& part_;
  bool held_ = false;
};
static_assert(kParts == 1 << (64 - 60));

std::uint64_t key_of(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }

[[gnu::noinline, gnu::cold]] bool reserve(PendingTable& pending) {
  const SlowPath slow;
  g_used.store(true);
  return pending.reserve(kPartRequests);
}

}  // namespace

void aio_submits(buffer::ThreadState& t, const AioRequest& request, std::uint64_t start,
                 std::uint64_t site) noexcept {
  File* file = file_of(request.fd);
  LockedPart part(t, request.block);
  if (!part) return;
  PendingTable& pending = part.pending();
  if (pending.capacity() == 0 && !reserve(pending)) return;
  // A block is in flight once: what was there before was collected unseen.
  if (const Request* old = pending.find(key_of(request.block))) pending.remove(old);
  Request* added = pending.add(key_of(request.block));
  if (added == nullptr) return;
  *added = {.key = added->key,
            .start = start,
            .offset = request.offset,
            .count = request.count,
            .parent = t.parent,
            .site = site,
            .result = 0,
            .done = 0,
            .file = file,
            .second = nullptr,
            .fd = request.fd,
            .level = record::clamp_level(t.level + std::uint64_t{1}),
            .op = request.op,
            .flags = 0,
            .slot = 0,
            .next = 0};
}

void aio_refused(buffer::ThreadState& t, const void* block) noexcept {
  LockedPart part(t, block);
  const Request* found = part ? part.pending().find(key_of(block)) : nullptr;
  if (found != nullptr) part.pending().remove(found);
}

void aio_is_done(buffer::ThreadState& t, const void* block, std::uint64_t now,
                 std::int64_t result) noexcept {
  LockedPart part(t, block);
  Request* found = part ? part.pending().find(key_of(block)) : nullptr;
  if (found == nullptr || found->done != 0) return;
  found->done = now;
  found->result = result;
}

File* aio_collected(buffer::ThreadState& t, const void* block, std::uint64_t now,
                    std::int64_t result) noexcept {
  Request request;
  {
    LockedPart part(t, block);
    const Request* found = part ? part.pending().find(key_of(block)) : nullptr;
    if (found == nullptr) return nullptr;
    request = *found;
    part.pending().remove(found);
  }
  const std::uint64_t end = request.done != 0 ? request.done : now;
  record_request(t, request, {std::max(end, request.start), result});
  return request.file;
}

void aio_before_close() noexcept {
  buffer::ThreadState& t = buffer::t_thread;
  if (!g_used.load() || in_vfork_child() || !buffer::is_attached(t)) return;
  const std::uint64_t now = record::ticks();
  for (AioPart& one : g_parts) {
    LockedPart part(t, one);
    if (!part) continue;
    part.pending().for_each([&](const Request& request) {
      const bool is_done = request.done != 0;  // and its result was never taken
      record_request(t, request,
                     {std::max(is_done ? request.done : now, request.start), request.result, -1,
                      is_done ? Completion::kKnown : Completion::kUnfinished});
    });
    part.pending().clear();
  }
}

}  // namespace dft::intercept
