// Which batch the events of a data loader belong to. A Lineage is one pass over a loader: its constant
// arguments, the id of its flows, and the batch that is being made. Called by module.cpp when the
// module is imported, and by loader_items.cpp and worker_queues.cpp for each sample and batch.
#pragma once
#include <vector>

#include "python/node.hpp"

namespace dft::python {

// Longer lists of samples are truncated, and `count` says how many there were.
constexpr Py_ssize_t kMostSamples = 64;

struct Lineage {
  std::string front;       // arguments of every batch, encoded
  std::uint64_t base = 0;  // the flow of batch n is base + n
  long long batch = -1;    // of the items that are read now
  long long items = 0;     // read for it
  struct Arrival {
    long long batch;
    long worker;
  };
  std::vector<Arrival> arrived;  // batches that are not handed over; few
  long long latest = -1;         // the last of them

  // The arguments of an event of batch `number`; `worker` may be None.
  void append_batch(std::string& out, long long number, PyObject* worker) const;
  // `batch` alone, for what happens inside the event of the batch.
  void append_current(std::string& out) const;
  [[nodiscard]] FlowEnd flow(long long number, long ends) const {
    return {base + static_cast<std::uint64_t>(number), static_cast<std::uint32_t>(ends)};
  }
};

extern PyTypeObject* g_lineage_type;
extern PyObject* g_index_key;  // "index"

// The samples of a batch; for a stream, whose samples have no number, how many it read.
void append_samples(std::string& out, PyObject* index, long long items);

// Records what happens in its scope: an item, or a step on the way of a batch. The caller keeps the
// node alive.
class Scope {
 public:
  explicit Scope(Node& node) : node_(node), on_(node.enabled) {
    if (on_) dftracer_open(&region_, &node.names);
  }
  ~Scope() {
    if (on_) dftracer_region_drop(&region_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  [[nodiscard]] bool on() const { return on_; }
  void end(std::string_view more) {
    if (on_) close_region(region_, node_, more);
    on_ = false;
  }

 private:
  Node& node_;
  bool on_;
  dftracer_region region_;
};

[[nodiscard]] bool add_lineage_type(PyObject* module);
// Items and Stream (loader_items.cpp).
[[nodiscard]] bool add_loader_item_types(PyObject* module);
// Builder, Tasks and Results (worker_queues.cpp).
[[nodiscard]] bool add_worker_queue_types(PyObject* module);

}  // namespace dft::python
