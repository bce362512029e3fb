// The table `events` as an Arrow stream: blocks become batches on several threads, and names are
// resolved in order. The consumer's pulls set the pace, so memory stays bounded.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reader/arrow/columns.hpp"
#include "reader/input/scan.hpp"
#include "reader/stats/stats.hpp"

namespace dft::reader {

// What a stream found, valid once it is finished. Shared with the Python object that reads it.
struct StreamResult {
  std::mutex mutex;
  bool finished = false;
  ScanResult scan_result;
  std::uint64_t rows = 0;
  std::uint64_t unresolved = 0;  // paths whose hash no record explains
  Stats summary;                 // if StreamOptions::summary
  // The texts of coded columns, by their numbers.
  std::map<Column, std::vector<std::string>> words;
};

struct StreamOptions {
  unsigned threads = 0;              // 0: one a core
  bool summary = false;              // gather `Stats` in the same pass
  std::vector<std::string> explain;  // where else to look for hashes that no record explains
};

void open_stream(std::vector<std::string> paths, TableOptions columns, StreamOptions options,
                 std::shared_ptr<StreamResult> result, ArrowArrayStream* out);

}  // namespace dft::reader
