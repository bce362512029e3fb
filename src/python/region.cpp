// Region: one event of a node, as an object, for code that instruments other people's functions:
// such an event takes arguments of its own when it ends, or is dropped when it turns out that there
// was none, as at the last `next` of a loop.
#include "python/region.hpp"

#include "python/node.hpp"
#include "python/support/type.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_region_type = nullptr;

class Region {
 public:
  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { drop(); }

  void begin(Node& node) {
    node_ = RefTo<Node>::borrow(&node);
    dftracer_open(&region_, &node.names);
  }
  // `arguments` may be null.
  void end(PyObject* arguments) {
    if (!node_) return;
    std::string more;
    if (arguments != nullptr) append_dict(more, arguments);
    close_region(region_, *node_, more);
    forget();
  }
  void end(std::string_view more, const FlowEnd& end) {
    if (!node_) return;
    close_flow(region_, *node_, more, end);
    forget();
  }
  void drop() {
    if (!node_) return;
    dftracer_region_drop(&region_);
    forget();
  }
  void detach() {
    if (!node_) return;
    dftracer_inside inside;
    dftracer_suspend(&region_, nullptr, &inside);
  }

 private:
  void forget() {
    region_.opaque[0] = 0;
    node_.reset();
  }

  RefTo<Node> node_;  // while it is open
  dftracer_region region_{};
};

// Region(node): begins it.
PyObject* region_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* node = nullptr;
  if (keywords != nullptr || !PyArg_ParseTuple(args, "O!:Region", g_node_type, &node))
    return nullptr;
  Ref self = create<Region>(type);
  if (self && node_of(node)->enabled) state_of<Region>(self.get()).begin(*node_of(node));
  return self.release();
}

// end(arguments=None): records it; the arguments follow the node's.
PyObject* region_end(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  state_of<Region>(self).end(count > 0 && PyDict_Check(args[0]) ? args[0] : nullptr);
  Py_RETURN_NONE;
}

PyObject* region_drop(PyObject* self, PyObject*) {
  state_of<Region>(self).drop();
  Py_RETURN_NONE;
}

// detach(): what begins from now on is beside it. It may cross others, so it gets a lane of its own.
PyObject* region_detach(PyObject* self, PyObject*) {
  state_of<Region>(self).detach();
  Py_RETURN_NONE;
}

PyMethodDef g_region_methods[] = {
    {"end", as_method(region_end), METH_FASTCALL, "End it and record it."},
    {"drop", region_drop, METH_NOARGS, "Record nothing."},
    {"detach", region_detach, METH_NOARGS, "Leave it open, with nothing more inside it."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_region_slots[] = {{Py_tp_new, as_slot(region_new)},
                                {Py_tp_dealloc, as_slot(deallocate<Region>)},
                                {Py_tp_methods, g_region_methods},
                                {0, nullptr}};
PyType_Spec g_region_spec = {"dftracer._core.Region", sizeof(Object<Region>), 0, Py_TPFLAGS_DEFAULT,
                             g_region_slots};

}  // namespace

bool is_region(PyObject* object) { return PyObject_TypeCheck(object, g_region_type) != 0; }

void end_region(PyObject* region, std::string_view more, const FlowEnd& end) {
  state_of<Region>(region).end(more, end);
}

bool add_region_type(PyObject* module) {
  if (g_region_type == nullptr) g_region_type = make_type(g_region_spec);
  return g_region_type != nullptr && add_type(module, "Region", g_region_type);
}

}  // namespace dft::python
