// Region: one event of a node, as an object. What instruments somebody else's functions needs it:
// such an event takes arguments of its own when it ends, or is dropped when there was nothing after
// all, the last `next` of a loop.
#include "python/region.hpp"

#include <new>

#include "python/node.hpp"
#include "python/types.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_region_type = nullptr;

struct Region {
  PyObject_HEAD;
  Node* node;  // strong while open
  dftracer_region region;
};

Region* region_of(PyObject* object) { return reinterpret_cast<Region*>(object); }

// Region(node): begins it.
PyObject* region_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* node = nullptr;
  if (keywords != nullptr || !PyArg_ParseTuple(args, "O!:Region", g_node_type, &node))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Region& region = *region_of(self);
  region.region.opaque[0] = 0;
  if (!node_of(node)->enabled) return self;
  Py_INCREF(node);
  region.node = node_of(node);
  dftracer_open(&region.region, &region.node->names);
  return self;
}

void forget(Region& region) {
  region.region.opaque[0] = 0;
  Py_CLEAR(region.node);
}

// end(arguments=None): records it; the arguments stand behind the node's.
PyObject* region_end(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Region& region = *region_of(self);
  if (region.node != nullptr) {
    std::string more;
    if (count > 0 && PyDict_Check(args[0])) append_dict(more, args[0]);
    close_region(region.region, *region.node, more);
    forget(region);
  }
  Py_RETURN_NONE;
}

PyObject* region_drop(PyObject* self, PyObject*) {
  Region& region = *region_of(self);
  if (region.node != nullptr) {
    dftracer_region_drop(&region.region);
    forget(region);
  }
  Py_RETURN_NONE;
}

void region_dealloc(PyObject* self) {
  Py_XDECREF(region_drop(self, nullptr));
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef g_region_methods[] = {
    {"end", as_method(region_end), METH_FASTCALL, "End it and record it."},
    {"drop", region_drop, METH_NOARGS, "It was none: nothing is recorded."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_region_slots[] = {{Py_tp_new, as_slot(region_new)},
                                {Py_tp_dealloc, as_slot(region_dealloc)},
                                {Py_tp_methods, g_region_methods},
                                {0, nullptr}};
PyType_Spec g_region_spec = {"dftracer._core.Region", sizeof(Region), 0, Py_TPFLAGS_DEFAULT,
                             g_region_slots};

}  // namespace

bool add_region_type(PyObject* module) {
  if (g_region_type == nullptr) g_region_type = make_type(g_region_spec);
  return g_region_type != nullptr && add_type(module, "Region", g_region_type);
}

}  // namespace dft::python
