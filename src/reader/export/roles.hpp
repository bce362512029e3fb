// Which process of a run is the main one, a worker or a helper, and what viewers call it. The rules
// are those of the report's table `processes`. Used by SpanForest, on one thread.
#pragma once
#include <string_view>

#include "reader/export/span_forest.hpp"

namespace dft::reader {

struct WorkSigns {
  bool computes = false;
  bool feeds = false;
};

// What an event of this category and name says about its process.
WorkSigns work_of(std::string_view category, std::string_view name);

// Fills role, place, shown and label of all processes, and `rows`.
void place_processes(SpanForest& forest);

}  // namespace dft::reader
