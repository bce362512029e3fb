#include "sink/deflate.hpp"

#include <isa-l/igzip_lib.h>

#include "format/member.hpp"

namespace dft::sink {
namespace {

std::uint32_t table_size(unsigned level) {
  switch (level) {
    case 0:
      return ISAL_DEF_LVL0_DEFAULT;
    case 1:
      return ISAL_DEF_LVL1_DEFAULT;
    case 2:
      return ISAL_DEF_LVL2_DEFAULT;
    default:
      return ISAL_DEF_LVL3_DEFAULT;
  }
}

}  // namespace

bool Gzip::member(std::string_view text, std::uint32_t lines, MmapBuffer& out) noexcept {
  const std::uint32_t tables = table_size(level_);
  constexpr std::size_t kStream = (sizeof(isal_zstream) + 63) / 64 * 64;
  if (work_.size() == 0) {
    if (!work_.ensure(kStream + tables)) return false;
    work_.resize(kStream + tables);
  }
  // ISA-L stores incompressible text in blocks of up to 64 KiB, each with 5 bytes of overhead. Level 0
  // never stores: its Huffman codes have up to 15 bits per byte.
  const std::size_t most =
      level_ == 0 ? 2 * text.size() + 512 : text.size() + text.size() / 8192 * 5 + 512;
  out.resize(0);
  if (!out.ensure(format::kMemberHeader + most + format::kMemberTrailer)) return false;

  auto* stream = reinterpret_cast<isal_zstream*>(work_.data());
  isal_deflate_init(stream);
  stream->level = level_;
  stream->level_buf = reinterpret_cast<std::uint8_t*>(work_.data()) + kStream;
  stream->level_buf_size = tables;
  stream->gzip_flag = IGZIP_GZIP_NO_HDR;  // ISA-L writes the trailer, we write the header
  stream->end_of_stream = 1;
  stream->next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  stream->avail_in = static_cast<std::uint32_t>(text.size());
  stream->next_out = reinterpret_cast<std::uint8_t*>(out.data()) + format::kMemberHeader;
  stream->avail_out = static_cast<std::uint32_t>(out.capacity() - format::kMemberHeader);
  if (isal_deflate(stream) != COMP_OK || stream->avail_in != 0 ||
      stream->internal_state.state != ZSTATE_END) {
    return false;
  }
  const std::size_t size = format::kMemberHeader + stream->total_out;
  format::write_member_header(out.data(), static_cast<std::uint32_t>(size), lines);
  out.resize(size);
  return true;
}

}  // namespace dft::sink
