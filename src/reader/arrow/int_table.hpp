// Tables of 64-bit integers, with an optional column of texts, from and to Arrow: the input and
// output of sums that SQL is too slow for. One thread at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reader/arrow/arrow.hpp"

namespace dft::reader {

struct IntTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> columns;  // of equal length
  // A last column of texts, if it has a name: all in one, and where each ends, 0 first.
  std::string text_name;
  std::string text;
  std::vector<std::int64_t> ends = {0};
  void add_text(const std::string& value) {
    text += value;
    ends.push_back(static_cast<std::int64_t>(text.size()));
  }
};

// Calls take(columns, rows) for every batch. Throws if the stream fails, or holds anything else but
// `columns` columns of 64-bit integers without nulls.
using TakeInts =
    std::function<void(const std::vector<const std::int64_t*>& columns, std::int64_t rows)>;
void read_ints(ArrowArrayStream* stream, std::size_t columns, const TakeInts& take);

// A stream of one batch, which keeps the table alive.
void open_int_table(std::shared_ptr<const IntTable> table, ArrowArrayStream* out);

}  // namespace dft::reader
