// Is a text, which somebody else wrote, a JSON value that may stand in a line as it is?
// Called by the encoder, on whatever thread drains.
#pragma once
#include <string_view>

namespace dft::sink {

// One value as our escaper writes text, without blanks or line breaks, nested at most 64 deep.
bool is_json(std::string_view text) noexcept;

}  // namespace dft::sink
