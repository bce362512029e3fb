// Copies of one trace, record by record as they stand: compacted, or repaired.
// Called by the Python extension, on a thread without the interpreter's lock.
#pragma once
#include "reader/input/scan.hpp"
#include "reader/write/write.hpp"

namespace dft::reader {

struct CopyOptions {
  unsigned threads = 0;
  unsigned level = 1;
  std::size_t member_text = std::size_t{2} << 20;  // of a gzip member
  bool repair = false;  // make text valid, and say in the trace what was lost
};

struct CopyResult {
  ScanResult read;
  std::uint64_t records = 0;  // copied
  std::uint64_t bytes = 0;    // of the copy
  std::string mismatch;       // why the copy was thrown away
};

// Writes the records of `path` to `out`, in their order, and reads them again: as many, with the
// same text, in the same order. Only then `out` appears.
CopyResult copy_trace(const std::string& path, const std::string& out, const CopyOptions& options,
                      Control* control);

}  // namespace dft::reader
