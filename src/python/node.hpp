// A node: the name of an annotation, whether it is on, and the arguments that its events carry.
// Called by the files of every wrapper, on the thread that runs Python code: with the GIL, or inside
// a critical section of the node where there is none.
#pragma once
#include "python/values.hpp"

#include <string>
#include <tuple>
#include <vector>

#include "api/core_abi.hpp"

namespace dft::python {

// One argument of a node, encoded. Of several entries of a key between the root and a node, the one
// with the highest `seq`, the latest, counts.
struct ArgumentEntry {
  Ref key;  // interned
  std::uint64_t seq;
  std::string bytes;
};

struct Node {
  dftracer_names names{};
  Ref name;
  Ref category;
  std::string name_text;
  std::string category_text;
  RefTo<Node> parent;
  long open_entries = 0;  // of `with`, on all threads
  bool enabled = true;
  bool pinned = false;  // its own arguments win over what the tree is given later
  std::vector<ArgumentEntry> arguments;
  dftracer_mark clock{};  // of reset() and flush()
  Ref bound_enter;        // __enter__ and __exit__: bound once, not at every `with`
  Ref bound_exit;
  std::string captured;  // arguments that the latest call of a function of this node captured
  // What events carry at present; valid for one version of the tree and one TaskArguments, which
  // its address identifies.
  std::string resolved;
  std::uint64_t resolved_version = 0;
  const void* resolved_for = nullptr;

  void rename(std::string_view new_category, std::string_view new_name) {
    category_text = new_category;
    name_text = new_name;
    names = {0, name_text.data(), name_text.size(), category_text.data(), category_text.size()};
  }
  auto visits() { return std::tie(parent, bound_enter, bound_exit); }
  auto clears() { return std::tie(name, category, parent, bound_enter, bound_exit); }
};

extern PyTypeObject* g_node_type;
extern PyObject* g_count_key;  // "count"

inline Node* node_of(PyObject* object) { return &state_of<Node>(object); }
inline bool is_node(PyObject* object) { return PyObject_TypeCheck(object, g_node_type) != 0; }

// The arguments of an event of this node that ends now. Valid until the GIL is released.
std::string_view current_arguments(Node& node);
// Ends and records a region with them, followed by `more`. On the path of every event.
void close_region(dftracer_region& region, Node& node, std::string_view more = {});
// An end of a flow: the flow's id, and a set of record::FlowEnd, 0 for none.
struct FlowEnd {
  std::uint64_t flow;
  std::uint32_t ends;
};
// The same for a span that is an end of a flow.
void close_flow(dftracer_region& region, Node& node, std::string_view more, const FlowEnd& end);
// An event without an inside that ended at `end`.
struct EndedMark {
  dftracer_mark* mark;
  std::uint64_t end;
  dftracer_names* names;
};
// Records such events of a node, in this order.
void close_marks(Node& node, std::string_view more, const EndedMark* ended, int count);

// Counts an event that is not recorded because no trace was started. Never called while one is.
void count_missed();
// A trace was started, or its start failed and was reported: nothing is missed from here on.
void stop_counting_missed();
[[nodiscard]] std::uint64_t missed_events();

// The name of an event that is not its node's, with the node's category. Points into itself and
// into the node, so it does not move, and its owner keeps the node alive.
class OwnNames {
 public:
  OwnNames(std::string_view name, const Node& node);
  OwnNames(PyObject* name, const Node& node);
  OwnNames(const OwnNames&) = delete;
  OwnNames& operator=(const OwnNames&) = delete;
  [[nodiscard]] dftracer_names* get() { return &names_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  dftracer_names names_{};
};

[[nodiscard]] bool add_node_type(PyObject* module);

// Methods of the type that other files define. arguments.cpp:
[[nodiscard]] bool prepare_arguments();
PyObject* node_update(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
PyObject* node_export(PyObject* self, PyObject*);
PyObject* node_adopt(PyObject* self, PyObject* args);
PyObject* node_forget(PyObject* self, PyObject* name);
PyObject* node_values(PyObject* self, PyObject*);
// node_regions.cpp:
PyObject* node_enter(PyObject* self, PyObject*);
PyObject* node_exit(PyObject* self, PyObject* const*, Py_ssize_t);
PyObject* node_start(PyObject* self, PyObject* args, PyObject* keywords);
PyObject* node_stop(PyObject* self, PyObject* args, PyObject* keywords);
PyObject* node_reset(PyObject* self, PyObject*);
PyObject* node_flush(PyObject* self, PyObject*);

}  // namespace dft::python
