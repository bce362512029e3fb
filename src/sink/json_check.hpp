// Checks whether text from outside is a JSON value that can be copied into a line verbatim.
// Called by the encoder, on the draining thread or in a recoverer.
#pragma once
#include <string_view>

namespace dft::sink {

// One value, with strings as our escaper writes them, no whitespace, nested at most 64 deep.
bool is_json(std::string_view text) noexcept;

}  // namespace dft::sink
