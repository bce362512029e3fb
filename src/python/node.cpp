#include "python/node.hpp"

#include <new>

#include "python/types.hpp"

namespace dft::python {

PyTypeObject* g_node_type = nullptr;
PyObject* g_count = nullptr;

namespace {

PyObject* node_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  (void)args;
  (void)keywords;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Node& node = *node_of(self);
  new (&node.name_text) std::string("unnamed");
  new (&node.category_text) std::string("APP");
  new (&node.own) std::vector<Entry>();
  new (&node.captured) std::string();
  new (&node.resolved) std::string();
  node.names = {0, node.name_text.data(), node.name_text.size(), node.category_text.data(),
                node.category_text.size()};
  node.enabled = true;
  return self;
}

// _define(category, name, parent=None, pinned=False)
PyObject* node_define(PyObject* self, PyObject* args) {
  PyObject* category = nullptr;
  PyObject* name = nullptr;
  PyObject* parent = Py_None;
  int pinned = 0;
  if (!PyArg_ParseTuple(args, "OO|Op:_define", &category, &name, &parent, &pinned)) return nullptr;
  if (parent != Py_None && !is_node(parent)) {
    PyErr_SetString(PyExc_TypeError, "_define(): the parent is not a node");
    return nullptr;
  }
  for (Node* at = parent != Py_None ? node_of(parent) : nullptr; at != nullptr; at = at->parent) {
    if (at != node_of(self)) continue;
    PyErr_SetString(PyExc_ValueError, "_define(): a node cannot be below itself");
    return nullptr;
  }
  Node& node = *node_of(self);
  PyObject* held = nullptr;
  node.name_text = text_of(name, held);
  Py_XDECREF(held);
  node.category_text = text_of(category, held);
  Py_XDECREF(held);
  node.names = {0, node.name_text.data(), node.name_text.size(), node.category_text.data(),
                node.category_text.size()};
  Py_INCREF(name);
  Py_XSETREF(node.name, name);
  Py_INCREF(category);
  Py_XSETREF(node.category, category);
  if (parent != Py_None) {
    Py_INCREF(parent);
    Node* before = node.parent;
    node.parent = node_of(parent);
    Py_XDECREF(before);
  }
  node.pinned = pinned != 0;
  Py_RETURN_NONE;
}

int node_clear(PyObject* self) {
  Node& node = *node_of(self);
  Py_CLEAR(node.name);
  Py_CLEAR(node.category);
  Py_CLEAR(node.parent);
  Py_CLEAR(node.enter);
  Py_CLEAR(node.exit);
  for (Entry& entry : node.own) Py_CLEAR(entry.key);
  node.own.clear();
  return 0;
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(node_of(self)->parent);
  Py_VISIT(node_of(self)->enter);
  Py_VISIT(node_of(self)->exit);
  return 0;
}

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  node_clear(self);
  Node& node = *node_of(self);
  using std::string;
  using Entries = std::vector<Entry>;
  node.name_text.~string();
  node.category_text.~string();
  node.own.~Entries();
  node.captured.~string();
  node.resolved.~string();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* object_or_none(PyObject* object) {
  if (object == nullptr) object = Py_None;
  Py_INCREF(object);
  return object;
}

PyObject* node_name(PyObject* self, void*) { return object_or_none(node_of(self)->name); }
PyObject* node_category(PyObject* self, void*) { return object_or_none(node_of(self)->category); }
PyObject* node_get_enabled(PyObject* self, void*) {
  return PyBool_FromLong(node_of(self)->enabled ? 1 : 0);
}
int node_set_enabled(PyObject* self, PyObject* value, void*) {
  const int truth = value != nullptr ? PyObject_IsTrue(value) : 0;
  if (truth < 0) return -1;
  node_of(self)->enabled = truth != 0;
  return 0;
}

// Python binds __enter__ and __exit__ to the node at every `with`: a descriptor of our own gives
// what was bound before. Called itself, as type(node).__enter__(node), it is the plain method.
struct Special {
  PyObject_HEAD;
  PyMethodDef* method;
  PyObject* Node::* kept;
};
PyTypeObject* g_special_type = nullptr;

PyMethodDef g_enter = {"__enter__", node_enter, METH_NOARGS, "Begin an event."};
PyMethodDef g_exit = {"__exit__", as_method(node_exit), METH_FASTCALL, "End it and record it."};

PyObject* special_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || !is_node(object)) {
    Py_INCREF(self);
    return self;
  }
  const auto& special = *reinterpret_cast<Special*>(self);
  // A node that is made for one block would stay alive through it, until the garbage collector.
  if (node_of(object)->pinned) return PyCFunction_New(special.method, object);
  PyObject*& kept = node_of(object)->*special.kept;
  if (kept == nullptr) kept = PyCFunction_New(special.method, object);
  Py_XINCREF(kept);
  return kept;
}

PyObject* special_call(PyObject* self, PyObject* args, PyObject*) {
  PyObject* node = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (node == nullptr || !is_node(node)) {
    PyErr_SetString(PyExc_TypeError, "the first argument must be a node");
    return nullptr;
  }
  PyObject* bound = special_get(self, node, nullptr);
  if (bound == nullptr) return nullptr;
  PyObject* rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
  PyObject* result = rest != nullptr ? PyObject_Call(bound, rest, nullptr) : nullptr;
  Py_XDECREF(rest);
  Py_DECREF(bound);
  return result;
}

void special_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot g_special_slots[] = {{Py_tp_descr_get, as_slot(special_get)},
                                 {Py_tp_call, as_slot(special_call)},
                                 {Py_tp_dealloc, as_slot(special_dealloc)},
                                 {0, nullptr}};
PyType_Spec g_special_spec = {"dftracer._core._Special", sizeof(Special), 0, Py_TPFLAGS_DEFAULT,
                              g_special_slots};

bool add_special(PyMethodDef& method, PyObject* Node::* kept) {
  PyObject* object = g_special_type->tp_alloc(g_special_type, 0);
  if (object == nullptr) return false;
  reinterpret_cast<Special*>(object)->method = &method;
  reinterpret_cast<Special*>(object)->kept = kept;
  const int failed =
      PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_node_type), method.ml_name, object);
  Py_DECREF(object);
  return failed == 0;
}

PyMethodDef g_node_methods[] = {
    {"start", as_method(node_start), METH_VARARGS | METH_KEYWORDS,
     "Begin an event that stop() ends; with metadata=True, record the time at once."},
    {"stop", as_method(node_stop), METH_VARARGS | METH_KEYWORDS, "End what start() began."},
    {"update", as_method(node_update), METH_FASTCALL | METH_KEYWORDS,
     "Set arguments of all later events of this node and of those below it."},
    {"reset", node_reset, METH_NOARGS, "Restart the clock of flush()."},
    {"flush", node_flush, METH_NOARGS, "Record an event from the last reset() or flush() to now."},
    {"_define", node_define, METH_VARARGS, nullptr},
    {"_export", node_export, METH_NOARGS, nullptr},
    {"_adopt", node_adopt, METH_VARARGS, nullptr},
    {"_forget", node_forget, METH_O, nullptr},
    {"_values", node_values, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef g_node_getset[] = {
    {"name", node_name, nullptr, "What events are called.", nullptr},
    {"cat", node_category, nullptr, "Their category.", nullptr},
    {"enabled", node_get_enabled, node_set_enabled, "Whether events are recorded.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot g_node_slots[] = {{Py_tp_new, as_slot(node_new)},
                              {Py_tp_dealloc, as_slot(node_dealloc)},
                              {Py_tp_traverse, as_slot(node_traverse)},
                              {Py_tp_clear, as_slot(node_clear)},
                              {Py_tp_methods, g_node_methods},
                              {Py_tp_getset, g_node_getset},
                              {0, nullptr}};
PyType_Spec g_node_spec = {"dftracer._core.Node", sizeof(Node), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           g_node_slots};

}  // namespace

void OwnNames::set(std::string_view name, const Node& node) {
  text_ = name;
  names_ = {0, text_.data(), text_.size(), node.category_text.data(), node.category_text.size()};
}

bool add_node_type(PyObject* module) {
  if (g_node_type == nullptr) {
    g_count = PyUnicode_InternFromString("count");
    g_special_type = make_inner_type(g_special_spec);
    g_node_type = make_type(g_node_spec);
    if (!prepare_arguments() || g_count == nullptr || g_special_type == nullptr ||
        g_node_type == nullptr || !add_special(g_enter, &Node::enter) ||
        !add_special(g_exit, &Node::exit)) {
      return false;
    }
  }
  return add_type(module, "Node", g_node_type);
}

}  // namespace dft::python
