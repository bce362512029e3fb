// Finding and inflating of gzip members, with ISA-L (format/member.hpp has their header).
// Called by the work queue, under the lock of a file, and by workers.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "format/member.hpp"
#include "reader/input/buffer.hpp"

struct inflate_state;

namespace dft::reader {

// The first member header at or after `from`: one of ours, or with `any` of any writer; npos if
// there is none.
std::size_t find_member(std::string_view bytes, std::size_t from, bool any);

enum class Inflated { kWhole, kCut, kBad };

// Inflates members that are there in full, or pieces of a stream of them.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends the text of one member (its header included in `bytes`) to `out`. kCut: the bytes end
  // inside it, and what was there has been appended. kBad: nothing was appended. `used` says how
  // many bytes it took. `most` bounds the text.
  Inflated member(std::string_view bytes, std::size_t most, Buffer& out, std::size_t& used);

  // A stream: begin() at a member's header, then pieces. Output is appended to `out` up to `most`
  // bytes in all. `used` bytes of the input were taken. kWhole: the member ended; kCut: more input
  // or more room is needed.
  void begin();
  Inflated piece(std::string_view bytes, std::size_t most, Buffer& out, std::size_t& used);

 private:
  // A member that takes all of `bytes`, checksum included, and gives at most `room` bytes of text:
  // without the copy that a stream needs. False, and nothing appended, for any other.
  bool at_once(std::string_view bytes, std::size_t room, Buffer& out);

  std::unique_ptr<inflate_state> state_;
};

}  // namespace dft::reader
