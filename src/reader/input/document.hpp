// Finds the records of one large JSON document as a stream, without keeping the document.
// Used by the work queue, under the lock of the file.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace dft::reader {

// Follows strings and brackets. Records are the objects of the array "traceEvents", or of the array
// that is the document itself.
class DocumentCutter {
 public:
  // Looks at text from `from` on. Returns the end of the last record in it that is whole, npos if
  // there is none. What stands before `begin()` is no record.
  std::size_t scan(std::string_view text, std::size_t from);
  // Where the first record of the text may begin: everything before can be dropped.
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] bool inside() const { return events_depth_ != 0; }
  // The first `count` bytes of the text were taken away.
  void drop(std::size_t count) { begin_ = begin_ > count ? begin_ - count : 0; }

 private:
  std::size_t begin_ = 0;
  int depth_ = 0;
  int events_depth_ = 0;  // depth inside the array of records, 0 outside of it
  bool in_string_ = false;
  bool escape_ = false;
  std::string key_;  // the last string at depth 1
};

}  // namespace dft::reader
