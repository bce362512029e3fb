// Follows positions in open files. Runs on the thread that finishes batches in order.
#include "reader/stats/accesses.hpp"

#include <algorithm>

namespace dft::reader {
namespace {

// A trace without the calls that close must not make this grow.
constexpr std::size_t kMostOpen = 64;

}  // namespace

std::uint32_t Accesses::path(const std::string& name) {
  return paths_.emplace(name, static_cast<std::uint32_t>(paths_.size())).first->second;
}

Accesses::Opened* Accesses::used_by(std::vector<Opened>& open, std::int64_t tid) {
  Opened* own = nullptr;
  for (Opened& opened : open) {
    if (opened.owner != tid) continue;
    if (own != nullptr) return nullptr;  // which of them?
    own = &opened;
  }
  if (own != nullptr || open.size() != 1) return own;
  open[0].shared = true;
  return open.data();
}

void Accesses::seek(Opened& opened, const FileCall& call) {
  opened.sought = true;
  opened.seeker = call.tid;
  if (!call.relative) {
    opened.known = call.offset != kUnknown;
    opened.position = call.offset;
  } else if (__builtin_add_overflow(opened.position, call.offset, &opened.position)) {
    opened.known = false;
  }
}

void Accesses::close(std::vector<Opened>& open, std::int64_t tid) {
  if (open.empty()) return;
  auto which = std::find_if(open.rbegin(), open.rend(),
                            [tid](const Opened& opened) { return opened.owner == tid; });
  if (which == open.rend()) --which;
  if (--which->descriptors == 0) open.erase(std::next(which).base());
}

Accesses::Placement Accesses::place(AccessRun& run, std::int64_t start, std::int64_t bytes) {
  std::int64_t end = 0;
  if (__builtin_add_overflow(start, bytes, &end)) end = start;
  std::int64_t stride = 0;
  if (__builtin_sub_overflow(start, run.start, &stride)) stride = 0;
  Pattern pattern = Pattern::kRandom;
  if (!run.moved) {
    pattern = Pattern::kFirst;
    stride = 0;
  } else if (start == run.end) {
    pattern = Pattern::kSequential;
  } else if (stride != 0 && stride == run.stride) {
    pattern = Pattern::kStrided;
  }
  run = {start, end, stride, true};
  return {start, pattern};
}

Accesses::Placement Accesses::follow(std::int32_t process, std::uint32_t path,
                                     const FileCall& call) {
  const OpenKey by_thread{call.tid, process, path};
  const OpenKey by_process{0, process, path};
  if (call.role == Role::kOpen) {
    std::vector<Opened>& open = open_[by_process];
    if (open.size() == kMostOpen) open.erase(open.begin());
    Opened& opened = open.emplace_back(Opened{.owner = call.tid});
    opened.known = call.offset != kUnknown;
    runs_[by_thread] = {};
    return {};
  }
  const auto entry = open_.find(by_process);
  Opened* opened = entry != open_.end() ? used_by(entry->second, call.tid) : nullptr;
  if (call.role == Role::kClose) {
    if (entry == open_.end()) return {};
    close(entry->second, call.tid);
    if (entry->second.empty()) open_.erase(entry);
    return {};
  }
  if (call.role == Role::kDuplicate) {
    if (opened != nullptr) ++opened->descriptors;
    return {};
  }
  if (call.role == Role::kSeek) {
    if (opened != nullptr) {
      seek(*opened, call);
    } else if (entry == open_.end() && !call.relative && call.offset != kUnknown) {
      // Opened before, or by a parent: from here on its place is known.
      seek(open_[by_process].emplace_back(Opened{.owner = call.tid}), call);
    }
    return {};
  }
  if (call.bytes == kUnknown) {
    if (opened != nullptr) opened->known = false;
    return {};
  }
  if (call.offset != kUnknown) return place(runs_[by_thread], call.offset, call.bytes);
  if (opened == nullptr || !opened->known) return {};
  // Threads that take turns at seeking are not followed: lines of a trace are in the order of time
  // for each thread only.
  const bool doubtful = opened->shared && opened->sought && opened->seeker != call.tid;
  AccessRun& run = opened->shared ? opened->run : runs_[by_thread];
  const Placement found = place(run, opened->position, call.bytes);
  opened->run = run;
  opened->position = run.end;
  return doubtful ? Placement{} : found;
}

}  // namespace dft::reader
