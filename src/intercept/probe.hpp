// Around every intercepted call: decide, call, record. On the program's threads; the real function
// is a parameter, so that a unit test can pass a fake (tests/unit/intercept/probe_test.cpp).
#pragma once
#include "intercept/call_record.hpp"
#include "intercept/call_subject.hpp"

namespace dft::intercept {

// With the preload library, constructors of other libraries may call before ours has run: the first
// call then starts the session. True if the category is watched now.
DFT_HOT extern std::atomic<bool> g_decided;
bool begin_early(Category category) noexcept;

// The calling thread, or null where its calls are not recorded: inside the tracer itself, and while
// the category is off.
[[gnu::always_inline]] inline buffer::ThreadState* watch(Category category) noexcept {
  if (!g_watched[static_cast<std::size_t>(category)].load(std::memory_order_acquire) || t_slow != 0)
      [[unlikely]] {
    if (g_decided.load(std::memory_order_relaxed) || t_slow != 0 || !begin_early(category))
      return nullptr;
  }
  return buffer::this_thread();
}

[[gnu::always_inline]] inline void count_bytes(buffer::ThreadState& t,
                                               const Moved& moved) noexcept {
  using buffer::Tally;
  if (moved.read != 0) Tally::add(t.tally->read, moved.read);
  if (moved.written != 0) Tally::add(t.tally->written, moved.written);
}

// The probes are not noexcept: read() is a cancellation point, and a cancelled thread unwinds
// through these frames. errno stays as the real call left it.

[[gnu::always_inline]] inline void count_call(buffer::ThreadState& t, const Moved& moved) noexcept {
  buffer::Tally::add(t.tally->recorded, 1);
  count_bytes(t, moved);
}

// A call that is not recorded still counts.
[[gnu::always_inline]] inline void count_filtered(buffer::ThreadState& t,
                                                  const Moved& moved) noexcept {
  buffer::Tally::add(t.tally->filtered, 1);
  count_bytes(t, moved);
}

// The file, and whether it is traced, are known before the call.
template <auto row, Category category, class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe_known(buffer::ThreadState& t, File* file, bool traced,
                                               int fd, Call call, Bytes bytes, F... fields) {
  if (!traced) {
    const auto ret = call();
    count_filtered(buffer::t_thread, bytes(ret));
    return ret;
  }
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  count_call(t, bytes(ret));
  record_call<row>(t, file, fd, start, end, ret, fields(ret)...);
  return ret;
}

template <auto row, Category category, class Call, class... F>
[[gnu::always_inline]] inline auto probe(FdSubject about, Call call, F... fields) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) [[unlikely]]
    return call();
  File* file = file_of(about.fd);
  return probe_known<row, category>(*t, file, file->traced, about.fd, call, fields...);
}

template <auto row, Category category, class Call, class... F>
[[gnu::always_inline]] inline auto probe(FdPair about, Call call, F... fields) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) [[unlikely]]
    return call();
  File* file = file_of(about.fd);
  const bool traced = file->traced || file_of(about.other)->traced;
  return probe_known<row, category>(*t, file, traced, about.fd, call, fields...);
}

// A stream without a descriptor is in memory: its bytes do not reach the kernel.
template <class Bytes>
struct InMemory {
  Bytes bytes;
  bool really;
  template <class R>
  Moved operator()(R ret) const {
    return really ? bytes(ret) : Moved{0, 0};
  }
};

template <auto row, Category category, class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe(StreamSubject about, Call call, Bytes bytes, F... fields) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) [[unlikely]]
    return call();
  const int fd = descriptor_of(about.stream);
  File* file = file_of(fd);
  return probe_known<row, category>(*t, file, file->traced, fd, call,
                                    InMemory<Bytes>{bytes, fd >= 0}, fields...);
}

// Paths are read only after the call, and only if the kernel has accepted the pointer.
template <auto row, Category category, bool kTwo = false, class Can, class Quick, class Find,
          class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe_path(Can can_be_read, Quick may_be, Find find, Call call,
                                              Bytes bytes, F... fields) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) [[unlikely]]
    return call();
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const bool readable =
      !has_failed(ret) || (!kTwo && follows_reading(reason<row>())) || can_be_read();
  if (readable && !may_be()) {
    count_filtered(*t, bytes(ret));
    return ret;
  }
  const std::uint64_t end = record::ticks();
  if (!readable) [[unlikely]] {
    count_call(*t, bytes(ret));
    if (g_nameless.traced) record_call<row>(*t, nullptr, -1, start, end, ret);
    return ret;
  }
  bool traced = false;
  File* file = find(traced);
  if (!traced) {
    count_filtered(*t, bytes(ret));
    return ret;
  }
  count_call(*t, bytes(ret));
  record_call<row>(*t, file, -1, start, end, ret, fields(ret)...);
  return ret;
}

template <auto row, Category category, class Call, class... F>
[[gnu::always_inline]] inline auto probe(PathSubject about, Call call, F... fields) {
  const auto find = [about](bool& traced) {
    File* file = file_at(about.directory, about.path);
    traced = file->traced;
    return file;
  };
  return probe_path<row, category>([about] { return kernel_reads(about.path); },
                                   [about] { return may_be_traced(about.path); }, find, call,
                                   fields...);
}

template <auto row, Category category, class Call, class... F>
[[gnu::always_inline]] inline auto probe(PathPair about, Call call, F... fields) {
  const auto may_be = [about] { return may_be_traced(about.path) || may_be_traced(about.other); };
  const auto find = [about](bool& traced) {
    File* file = file_at(about.directory, about.path);
    traced = file->traced || file_at(about.other_directory, about.other)->traced;
    return file;
  };
  const auto can = [about] { return kernel_reads(about.path) && kernel_reads(about.other); };
  // The kernel may have failed before it read the second path.
  return probe_path<row, category, true>(can, may_be, find, call, fields...);
}

template <auto row, Category category, class Call, class... F>
[[gnu::always_inline]] inline auto probe(UnnamedSubject, Call call, F... fields) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) [[unlikely]]
    return call();
  return probe_known<row, category>(*t, nullptr, g_nameless.traced, -1, call, fields...);
}

template <auto row, Category category, class Call, class Bytes, class... F>
[[gnu::always_inline]] inline auto probe(ProcessSubject, Call call, Bytes bytes, F... fields) {
  buffer::ThreadState* t = watch(category);
  if (t == nullptr) [[unlikely]]
    return call();
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  count_call(*t, bytes(ret));
  record_call<row>(*t, nullptr, -1, start, end, ret, fields(ret)...);
  return ret;
}

}  // namespace dft::intercept
