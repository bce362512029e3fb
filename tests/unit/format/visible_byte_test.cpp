#include "format/visible_byte.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <string_view>

TEST_CASE("every byte becomes six characters that name it") {
  for (unsigned byte = 0; byte < 256; ++byte) {
    char out[dft::format::kVisibleByte];
    char expected[16];
    std::snprintf(expected, sizeof expected, "\\uef%02x", byte);
    const char* end = dft::format::write_visible_byte(out, static_cast<unsigned char>(byte));
    CHECK(end == out + sizeof out);
    CHECK(std::string_view(out, sizeof out) == expected);
  }
}
