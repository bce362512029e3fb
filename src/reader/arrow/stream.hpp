// The table `events` as an Arrow stream: blocks become batches on several threads, names are
// resolved in order, and whoever pulls decides how fast it goes.
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

// What the last finished stream of a reader found; shared with whoever asks afterwards.
struct StreamResult {
  std::mutex mutex;
  bool finished = false;
  ScanResult scan_result;
  std::uint64_t rows = 0;
  std::uint64_t unresolved = 0;  // paths whose hash no record explains
  Stats summary;                 // if it was asked for
  // The texts of coded columns, by their numbers.
  std::map<Column, std::vector<std::string>> words;
};

struct StreamOptions {
  unsigned threads = 0;              // 0: one a core
  bool summary = false;              // what `Stats` tells is gathered in the same pass
  std::vector<std::string> explain;  // where else to look for hashes that no record explains
};

void open_stream(std::vector<std::string> paths, TableOptions columns, StreamOptions options,
                 std::shared_ptr<StreamResult> result, ArrowArrayStream* out);

}  // namespace dft::reader
