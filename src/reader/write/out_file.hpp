// An output file that is written under a temporary name and renamed once it is complete; or a
// stream. One thread.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace dft::reader {

class OutFile {
 public:
  explicit OutFile(std::string path);
  // Goes where a descriptor goes, as it comes: to a pipe, or stdout. The descriptor stays open.
  explicit OutFile(int fd);
  // Counts, and goes nowhere.
  OutFile() = default;
  ~OutFile();  // removes what was not committed
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;
  void write(std::string_view text);
  // Nothing more will be written. It can be read at written_path() then.
  void finish();
  void commit();
  [[nodiscard]] const std::string& written_path() const { return part_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::string path_;
  std::string part_;
  std::FILE* file_ = nullptr;
  bool counts_only_ = true;
  bool committed_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace dft::reader
