// A node: what an annotation is called, whether it is on, and the arguments that its events carry.
// Everything here runs with the GIL, or inside a critical section of the node where there is none.
#pragma once
#include "python/values.hpp"

#include <string>
#include <vector>

#include "api/core_abi.hpp"

namespace dft::python {

// One argument, encoded. The latest of a key on the way from the root to a node is the one that
// counts: `seq` tells.
struct Entry {
  PyObject* key;  // interned
  std::uint64_t seq;
  std::string bytes;
};

struct Node {
  PyObject_HEAD;
  dftracer_names names;
  PyObject* name;
  PyObject* category;
  std::string name_text;
  std::string category_text;
  Node* parent;
  long entries;  // of `with`, on all threads
  bool enabled;
  bool pinned;  // its own arguments win over what the tree is given later
  std::vector<Entry> own;
  dftracer_mark clock;  // of reset() and flush()
  PyObject* enter;      // __enter__ and __exit__, bound: made once, not at every `with`
  PyObject* exit;
  std::string captured;  // what the latest call of a function of this node said in its parameters
  // What events carry at present; valid for one version of the tree and one context.
  std::string resolved;
  std::uint64_t resolved_version;
  PyObject* resolved_context;
};

extern PyTypeObject* g_node_type;
extern PyObject* g_count;  // "count"

inline Node* node_of(PyObject* object) { return reinterpret_cast<Node*>(object); }
inline bool is_node(PyObject* object) { return PyObject_TypeCheck(object, g_node_type) != 0; }

// The arguments of an event of this node that ends now. Valid until the GIL is given away.
std::string_view arguments_of(Node& node);
// Ends and records a region with them; `more` stands behind them.
void close_region(dftracer_region& region, Node& node, std::string_view more = {});
// An event that ended at `end`.
struct Ending {
  dftracer_mark* mark;
  std::uint64_t end;
  dftracer_names* names;
};
// Records such events of a node, in this order.
void close_marks(Node& node, std::string_view more, const Ending* endings, int count);

// An event that was not recorded because no trace was started. Never called while one is.
void count_missed();
// A trace was started, or its start failed and was reported: nothing is missed from here on.
void stop_counting_missed();
[[nodiscard]] std::uint64_t missed_events();

// Name and category of another event of a node.
class OwnNames {
 public:
  void set(std::string_view name, const Node& node);
  [[nodiscard]] dftracer_names* get() { return &names_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  dftracer_names names_{};
};

bool add_node_type(PyObject* module);

// The type's methods, by what they are about. arguments.cpp:
bool prepare_arguments();
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
