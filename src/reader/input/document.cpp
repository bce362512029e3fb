// A scanner of brackets and strings that cuts a JSON document between its records.
#include "reader/input/document.hpp"

namespace dft::reader {

std::size_t DocumentCutter::scan(std::string_view text, std::size_t from) {
  std::size_t cut = std::string_view::npos;
  for (std::size_t at = from; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string_) {
      if (escape_) {
        escape_ = false;
      } else if (c == '\\') {
        escape_ = true;
      } else if (c == '"') {
        in_string_ = false;
      } else if (c == '\n') {
        // No string holds a raw line end: the text is damaged. What follows is taken for the next
        // record; the parser says what was lost.
        in_string_ = false;
        if (events_depth_ != 0) depth_ = events_depth_;
        continue;
      }
      if (depth_ == 1 && in_string_ && events_depth_ == 0 && key_.size() < 64) key_ += c;
      continue;
    }
    switch (c) {
      case '"':
        in_string_ = true;
        if (depth_ == 1 && events_depth_ == 0) key_.clear();
        break;
      case '{':
        ++depth_;
        break;
      case '[':
        ++depth_;
        if (events_depth_ == 0 && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
          events_depth_ = depth_;
          begin_ = at + 1;
        }
        break;
      case '}':
        if (depth_ > events_depth_) --depth_;
        if (events_depth_ != 0 && depth_ == events_depth_) cut = at + 1;
        break;
      case ']':
        if (events_depth_ != 0 && depth_ == events_depth_) {
          events_depth_ = 0;
          if (cut == std::string_view::npos) cut = at;
          --depth_;
        } else if (depth_ > events_depth_) {
          --depth_;
        }
        break;
      default:
        break;
    }
  }
  if (events_depth_ == 0 && cut == std::string_view::npos) begin_ = text.size();
  return cut;
}

}  // namespace dft::reader
