#include "intercept/mpi_requests.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "buffer/span.hpp"
#include "intercept/call_args.hpp"
#include "intercept/mpi_names.hpp"

namespace dft::intercept::mpi {
namespace {

using record::ArgType;

// What a call has started, from its start to its completion, on a lane beside the thread: it crosses
// whatever the thread did meanwhile.
void emit_request(const Request& request, const Result& result, std::uint64_t wait_start,
                  std::uint64_t end) noexcept {
  buffer::ThreadState* t = buffer::this_thread();
  if (t == nullptr || request.start == 0 || !buffer::same_epoch(t->live, request.live)) return;
  CallArgs args;
  const auto put = [&args](Key key, std::int64_t value) {
    if (value >= 0) args.put(key, ArgType::kInt, static_cast<std::uint64_t>(value));
  };
  if (request.file != nullptr && request.file->hash != 0)
    args.put(Key::fhash, ArgType::kHash, request.file->hash);
  if (g_details.load(std::memory_order_relaxed)) {
    put(Key::request, static_cast<std::int64_t>(request.number));
    put(Key::comm, request.comm);
    put(Key::seq, request.seq);
    const bool arrived = request.receives && result.known;
    put(Key::bytes, arrived ? result.bytes : request.receives ? kNotKnown : request.bytes);
    put(Key::capacity, request.capacity);
    if (!request.is_file) {
      put(Key::peer, arrived ? result.source : request.peer);
      if (request.world_peer != request.peer && (!arrived || result.source == request.peer))
        put(Key::world_peer, request.world_peer);
      put(Key::tag, arrived && result.source >= 0 ? result.tag : request.tag);
    }
    put(Key::offset, request.offset);
    args.put(Key::wait, ArgType::kTicks, end - wait_start);
  }
  record::Head head{};
  head.kind = record::Kind::kSpan;
  head.flags = record::kOwnLane;
  head.level = request.level;
  head.name = request.name;
  head.category = request_category(request.is_file);
  head.id = buffer::new_id(*t);
  head.parent = request.parent;
  head.start = request.start;
  head.duration = end - request.start;
  buffer::write_record(t->live, head, args.bytes(), args.size());
}

}  // namespace

Pending::Pending(const Given& given, bool single) noexcept {
  count_ =
      single ? 1 : static_cast<std::size_t>(std::max<std::int64_t>(given.number(Role::number), 0));
  const Role role = single ? Role::done : Role::dones;
  if (is_no_pointer(given.word(role))) count_ = 0;
  if (count_ > std::size(own_)) {
    void* at = ::mmap(nullptr, count_ * sizeof(Word), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) count_ = 0;
    if (at != MAP_FAILED) words_ = static_cast<Word*>(at);
  }
  for (std::size_t i = 0; i < count_; ++i) words_[i] = given.handle_in(role, i);
}
Pending::~Pending() {
  if (words_ != own_) ::munmap(words_, count_ * sizeof(Word));
}

Result status_at(const Given& given, Role role, std::size_t i) noexcept {
  if (!given.is_given(role) || given.lib.status_size == 0) return {};
  return result_of(given.lib, given.at<std::byte>(role) + i * given.lib.status_size);
}

namespace {

void complete_one(const Given& given, Word word, Word where, const Result& result,
                  std::uint64_t start, std::uint64_t end, Completed& completed) {
  Request request;
  if (word == 0 || word == given.lib.no_request) return;
  ++completed.number;
  if (!take_request(word, where, request)) return;
  completed.last_request = static_cast<std::int64_t>(request.number);
  emit_request(request, result, start, end);
}

}  // namespace

bool complete(const Given& given, const Pending& pending, std::uint64_t start, std::uint64_t end,
              Completed& completed) noexcept {
  if (given.has(Role::flag) && *given.at<int>(Role::flag) == 0) return false;
  const auto one = [&](Role role, std::size_t i, Role status, std::size_t at) {
    complete_one(given, pending.word(i), given.address_in(role, i), status_at(given, status, at),
                 start, end, completed);
  };
  if (given.has(Role::done)) {
    one(Role::done, 0, Role::status, 0);
  } else if (given.has(Role::index)) {
    const std::int64_t index = *given.at<int>(Role::index);
    if (index >= 0) one(Role::dones, static_cast<std::size_t>(index), Role::status, 0);
  } else if (given.has(Role::total)) {
    const std::int64_t total = *given.at<int>(Role::total);
    if (total == 0) return false;
    for (std::int64_t i = 0; i < total; ++i) {
      const std::int64_t index = given.at<int>(Role::indices)[i];
      if (index >= 0)
        one(Role::dones, static_cast<std::size_t>(index), Role::statuses,
            static_cast<std::size_t>(i));
    }
  } else {
    for (std::size_t i = 0; i < pending.count(); ++i) one(Role::dones, i, Role::statuses, i);
  }
  return true;
}

void complete_failed(const Given& given, const Pending& pending, std::uint64_t start,
                     std::uint64_t end, Completed& completed) noexcept {
  const Role role = given.has(Role::done) ? Role::done : Role::dones;
  for (std::size_t i = 0; i < pending.count(); ++i) {
    if (given.handle_in(role, i) == pending.word(i)) continue;
    complete_one(given, pending.word(i), given.address_in(role, i), {}, start, end, completed);
  }
}

}  // namespace dft::intercept::mpi
