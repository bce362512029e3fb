// One input file of a trace, and what its head says about it. Opened by the work queue; shared
// by the workers that read its blocks.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "reader/input/buffer.hpp"
#include "reader/input/pairs.hpp"
#include "reader/parse/event.hpp"

namespace dft::reader {

// A descriptor that is closed with its last user. Reads at given places, so that threads share it.
class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  // Nothing behind this place is read: a file that grows meanwhile stays as long as it was.
  void end_at(std::uint64_t size) { end_ = size; }
  // Bytes read, fewer only at the end of the file; -errno if it cannot be read.
  [[nodiscard]] long read(std::uint64_t offset, char* to, std::size_t size) const;

 private:
  int fd_;
  std::uint64_t end_ = UINT64_MAX;
};

enum class FileLayout : std::uint8_t {
  kLines,     // a record a line
  kDocument,  // one JSON document, its records in an array: torch.profiler, Chrome
};

struct InFile {
  std::string path;
  std::uint32_t index = 0;
  std::uint64_t size = 0;
  std::uint64_t most = UINT64_MAX;  // of its bytes are looked at; set before it is opened
  int error = 0;                    // errno, if it could not be opened
  bool compressed = false;
  FileLayout layout = FileLayout::kLines;
  FileClock clock;
  std::int64_t rank = -1;       // distributedInfo of torch.profiler
  std::string host;             // host_name of torch.profiler
  std::int64_t started_ns = 0;  // of its first start record
  bool started = false;
  std::string named_host;  // the first that a record of its head names
  bool merged = false;     // made by a merge: its MP records say what its processes were before
  bool bracket = false;    // the text begins with [
  std::string run;         // of its start record: equal in all files of a run
  std::string process;     // likewise: the process, over hosts and reuse of its number
  bool ours = false;       // its start record has the keys that only this project writes
  bool records = false;    // a record stands in its head
  bool blank = false;      // nothing but brackets and blanks does
  std::shared_ptr<FileHandle> handle;
  std::shared_ptr<PairsOnce> pairs;  // none: halves of spans are left as they are
};

// Opens the file and looks at its head. False (and `error`) if that is not possible. A document
// whose clock stands behind its events is read through once for it.
bool open_file(InFile& file);

}  // namespace dft::reader
