// Inflating with ISA-L. Each worker thread, and each streamed file, has an Inflater of its own.
#include "reader/input/inflate.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>

namespace dft::reader {
namespace {

std::uint32_t get32(const char* p) {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace

std::size_t find_member(std::string_view bytes, std::size_t from, bool any) {
  for (std::size_t at = from; at + format::kMemberHeader <= bytes.size(); ++at) {
    const auto* found = static_cast<const char*>(
        std::memchr(bytes.data() + at, 0x1f, bytes.size() - at - format::kMemberHeader + 1));
    if (found == nullptr) break;
    at = static_cast<std::size_t>(found - bytes.data());
    format::MemberHeader header;
    const auto here = bytes.substr(at);
    if (any ? format::is_gzip(here) && (static_cast<unsigned char>(here[3]) & 0xe0) == 0
            : format::read_member_header(here, header)) {
      return at;
    }
  }
  return std::string_view::npos;
}

Inflater::Inflater() : state_(std::make_unique<inflate_state>()) {}
Inflater::~Inflater() = default;

void Inflater::begin() {
  isal_inflate_init(state_.get());
  state_->crc_flag = ISAL_GZIP;
}

Inflated Inflater::piece(std::string_view bytes, std::size_t most, Buffer& out, std::size_t& used) {
  const std::size_t before = out.size();
  out.reserve(std::max(most, before));
  state_->next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data()));
  state_->avail_in = static_cast<std::uint32_t>(bytes.size());
  state_->next_out = reinterpret_cast<std::uint8_t*>(out.data()) + before;
  state_->avail_out = static_cast<std::uint32_t>(most > before ? most - before : 0);
  const int code = isal_inflate(state_.get());
  used = bytes.size() - state_->avail_in;
  out.resize(static_cast<std::size_t>(reinterpret_cast<char*>(state_->next_out) - out.data()));
  if (code < ISAL_DECOMP_OK || code == ISAL_NEED_DICT) return Inflated::kBad;
  return state_->block_state == ISAL_BLOCK_FINISH ? Inflated::kWhole : Inflated::kCut;
}

bool Inflater::at_once(std::string_view bytes, std::size_t room, Buffer& out) {
  const std::size_t before = out.size();
  begin();
  out.reserve(before + room);
  state_->next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data()));
  state_->avail_in = static_cast<std::uint32_t>(bytes.size());
  state_->next_out = reinterpret_cast<std::uint8_t*>(out.data()) + before;
  state_->avail_out = static_cast<std::uint32_t>(room);
  if (isal_inflate_stateless(state_.get()) != ISAL_DECOMP_OK ||
      state_->block_state != ISAL_BLOCK_FINISH || state_->avail_in != 0) {
    return false;
  }
  out.resize(before + room - state_->avail_out);
  return true;
}

Inflated Inflater::member(std::string_view bytes, std::size_t most, Buffer& out,
                          std::size_t& used) {
  const std::size_t before = out.size();
  // The trailer says how long the text is; room for that at once spares most calls.
  std::size_t room = bytes.size() < 18 ? 0 : get32(bytes.data() + bytes.size() - 4);
  if (room > bytes.size() * 1100) room = bytes.size() * 8;
  room = std::max<std::size_t>(room, 1024);
  if (room <= most && at_once(bytes, room, out)) {
    used = bytes.size();
    return Inflated::kWhole;
  }
  begin();
  std::size_t at = 0;
  for (;;) {
    std::size_t taken = 0;
    const std::size_t limit = before + std::min(room, most);
    const std::size_t had = out.size();
    const Inflated result = piece(bytes.substr(at), limit, out, taken);
    at += taken;
    used = at;
    if (result == Inflated::kWhole) return result;
    if (result == Inflated::kBad || (out.size() >= limit && room >= most)) {
      out.resize(before);
      return Inflated::kBad;
    }
    if (out.size() >= limit) {
      room *= 4;
    } else if (at == bytes.size() || (taken == 0 && out.size() == had)) {
      return Inflated::kCut;
    }
  }
}

}  // namespace dft::reader
