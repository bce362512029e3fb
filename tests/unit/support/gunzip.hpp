// Reads a file of gzip members strictly: each one whole, nothing between or after them.
// Uses zlib if it is installed, as an independent check of what ISA-L wrote; otherwise ISA-L.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#ifdef DFTRACER_HAVE_ZLIB
#include <zlib.h>
#else
#include <isa-l/igzip_lib.h>

#include <cstdint>
#include <memory>
#endif

namespace fixture {

inline std::vector<std::string> gunzip(const std::string& file) {
  std::vector<std::string> members;
  std::vector<char> room(8 << 20);
  std::size_t at = 0;
  while (at < file.size()) {
#ifdef DFTRACER_HAVE_ZLIB
    z_stream stream{};
    REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data() + at));
    stream.avail_in = static_cast<uInt>(file.size() - at);
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int result = inflate(&stream, Z_FINISH);
    members.emplace_back(room.data(), stream.total_out);
    at += stream.total_in;
    inflateEnd(&stream);
    REQUIRE(result == Z_STREAM_END);
#else
    const auto state = std::make_unique<inflate_state>();
    isal_inflate_init(state.get());
    state->crc_flag = ISAL_GZIP;
    state->next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(file.data() + at));
    state->avail_in = static_cast<std::uint32_t>(file.size() - at);
    state->next_out = reinterpret_cast<std::uint8_t*>(room.data());
    state->avail_out = static_cast<std::uint32_t>(room.size());
    REQUIRE(isal_inflate(state.get()) == ISAL_DECOMP_OK);
    REQUIRE(state->block_state == ISAL_BLOCK_FINISH);
    members.emplace_back(room.data(), state->total_out);
    at = file.size() - state->avail_in;
#endif
  }
  return members;
}

// All members as one text.
inline std::string gunzip_text(const std::string& file) {
  std::string text;
  for (const std::string& member : gunzip(file)) text += member;
  return text;
}

}  // namespace fixture
