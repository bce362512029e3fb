// Fuzzes the escaper with arbitrary bytes: a strict parser accepts the result as the body of a JSON
// string, it fits into the documented size, and the bytes round-trip.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "../unit/support/strict_json.hpp"
#include "format/escape.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<char> room(size * dft::format::kEscapeGrowth);
  char* end = dft::format::escape(room.data(), bytes);
  const auto used = static_cast<std::size_t>(end - room.data());
  if (used > room.size()) std::abort();
  const std::string_view escaped(room.data(), used);
  const auto back = json::decode(escaped);
  if (!back.has_value() || *back != bytes) std::abort();
  if (!json::valid("\"" + std::string(escaped) + "\"")) std::abort();
  // Escaping in two pieces gives the same text, unless the cut splits a character.
  if (size > 1 && (data[size / 2] & 0xc0) != 0x80) {
    std::vector<char> again(room.size());
    char* middle = dft::format::escape(again.data(), bytes.substr(0, size / 2));
    char* last = dft::format::escape(middle, bytes.substr(size / 2));
    if (std::string_view(again.data(), static_cast<std::size_t>(last - again.data())) != escaped) {
      std::abort();
    }
  }
  return 0;
}
