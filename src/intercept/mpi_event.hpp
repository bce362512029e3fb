// The event of one call of MPI while it is made: an open span, so that the I/O calls inside name it as
// their parent. On the thread that makes the call.
#pragma once
#include <cstdint>
#include <string_view>

#include "buffer/span.hpp"
#include "intercept/call_args.hpp"
#include "intercept/mpi_words.hpp"

namespace dft::intercept::mpi {

struct Event {
  buffer::Span span;
  bool details;

  void put(Key key, std::int64_t value) noexcept {
    span.draft.put(g_ids.key[static_cast<std::size_t>(key)], record::ArgType::kInt,
                   static_cast<std::uint64_t>(value));
  }
  void put_known(Key key, std::int64_t value) noexcept {
    if (value >= 0) put(key, value);
  }
  void put_text(Key key, std::string_view text) noexcept {
    span.draft.put_bytes(g_ids.key[static_cast<std::size_t>(key)], record::ArgType::kString, text);
  }
};

void open_event(Event& event, std::uint32_t name, std::uint32_t category) noexcept;
void close_event(Event& event, std::uint64_t end) noexcept;

// Says what a communicator is, unless the trace has it.
void announce_if_new(Comm& comm) noexcept;

// Of files.
const char* without_prefix(const char* path) noexcept;
void put_hints(Event& event, const Given& given, Word file) noexcept;
// Where the call was in the file, in bytes; kNotKnown where the library does not say.
std::int64_t byte_offset(const Given& given, const OpenFile& file, Word handle,
                         std::int64_t bytes) noexcept;

}  // namespace dft::intercept::mpi
