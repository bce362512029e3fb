// The type Node: its life, its attributes, and the descriptors that make `with` cheap.
#include "python/node.hpp"

#include "python/support/type.hpp"

namespace dft::python {

PyTypeObject* g_node_type = nullptr;
PyObject* g_count_key = nullptr;

namespace {

PyObject* node_new(PyTypeObject* type, PyObject*, PyObject*) {
  Ref self = create<Node>(type);
  if (self) node_of(self.get())->rename("APP", "unnamed");
  return self.release();
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
  const Node* above = parent != Py_None ? node_of(parent) : nullptr;
  for (; above != nullptr; above = above->parent.get()) {
    if (above != node_of(self)) continue;
    PyErr_SetString(PyExc_ValueError, "_define(): a node cannot be below itself");
    return nullptr;
  }
  Node& node = *node_of(self);
  Ref held_category;
  Ref held_name;
  node.rename(text_of(category, held_category), text_of(name, held_name));
  node.name = Ref::borrow(name);
  node.category = Ref::borrow(category);
  if (parent != Py_None) node.parent = RefTo<Node>::borrow(node_of(parent));
  node.pinned = pinned != 0;
  Py_RETURN_NONE;
}

int node_clear(PyObject* self) {
  node_of(self)->arguments.clear();
  return clear<Node>(self);
}

PyObject* object_or_none(const Ref& object) {
  return object ? object.new_reference() : new_reference(Py_None);
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

// Python binds __enter__ and __exit__ to the node at every `with`: this descriptor returns what was
// bound before. Called itself, as type(node).__enter__(node), it is the plain method.
struct CachedMethod {
  PyMethodDef* method;
  Ref Node::* bound;
};
PyTypeObject* g_cached_method_type = nullptr;

PyMethodDef g_enter = {"__enter__", node_enter, METH_NOARGS, "Begin an event."};
PyMethodDef g_exit = {"__exit__", as_method(node_exit), METH_FASTCALL, "End it and record it."};

PyObject* cached_method_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || !is_node(object)) return new_reference(self);
  const auto& cached = state_of<CachedMethod>(self);
  // The cycle would keep a node that is made for one block alive until the garbage collector runs.
  if (node_of(object)->pinned) return PyCFunction_New(cached.method, object);
  Ref& bound = node_of(object)->*cached.bound;
  if (!bound) bound = Ref(PyCFunction_New(cached.method, object));
  return bound.new_reference();
}

PyObject* cached_method_call(PyObject* self, PyObject* args, PyObject*) {
  PyObject* node = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (node == nullptr || !is_node(node)) {
    PyErr_SetString(PyExc_TypeError, "the first argument must be a node");
    return nullptr;
  }
  const Ref bound(cached_method_get(self, node, nullptr));
  if (!bound) return nullptr;
  const Ref rest(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
  return rest ? PyObject_Call(bound.get(), rest.get(), nullptr) : nullptr;
}

PyType_Slot g_cached_method_slots[] = {{Py_tp_descr_get, as_slot(cached_method_get)},
                                       {Py_tp_call, as_slot(cached_method_call)},
                                       {Py_tp_dealloc, as_slot(deallocate<CachedMethod>)},
                                       {0, nullptr}};
PyType_Spec g_cached_method_spec = {"dftracer._core._CachedMethod", sizeof(Object<CachedMethod>), 0,
                                    Py_TPFLAGS_DEFAULT, g_cached_method_slots};

bool add_cached_method(PyMethodDef& method, Ref Node::* bound) {
  const Ref object = create<CachedMethod>(g_cached_method_type, &method, bound);
  return object && PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_node_type), method.ml_name,
                                          object.get()) == 0;
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
                              {Py_tp_dealloc, as_slot(deallocate<Node>)},
                              {Py_tp_traverse, as_slot(traverse<Node>)},
                              {Py_tp_clear, as_slot(node_clear)},
                              {Py_tp_methods, g_node_methods},
                              {Py_tp_getset, g_node_getset},
                              {0, nullptr}};
PyType_Spec g_node_spec = {"dftracer._core.Node", sizeof(Object<Node>), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           g_node_slots};

}  // namespace

OwnNames::OwnNames(std::string_view name, const Node& node)
    : text_(name),
      names_{0, text_.data(), text_.size(), node.category_text.data(), node.category_text.size()} {}

OwnNames::OwnNames(PyObject* name, const Node& node) {
  Ref held;
  text_ = text_of(name, held);
  names_ = {0, text_.data(), text_.size(), node.category_text.data(), node.category_text.size()};
}

bool add_node_type(PyObject* module) {
  if (g_node_type == nullptr) {
    g_count_key = intern("count").release();
    g_cached_method_type = make_internal_type(g_cached_method_spec);
    g_node_type = make_type(g_node_spec);
    if (!prepare_arguments() || g_count_key == nullptr || g_cached_method_type == nullptr ||
        g_node_type == nullptr || !add_cached_method(g_enter, &Node::bound_enter) ||
        !add_cached_method(g_exit, &Node::bound_exit)) {
      return false;
    }
  }
  return add_type(module, "Node", g_node_type);
}

}  // namespace dft::python
