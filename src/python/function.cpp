// Callables that record their calls: a call costs two clock reads and a record, not Python code, and
// adds no frame to a traceback. To introspection, such an object is the function that it wraps.
// Python calls them on any of its threads; the call_ functions are on the path of every event.
#include "python/function.hpp"

#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "python/generator.hpp"
#include "python/kind.hpp"
#include "python/node.hpp"
#include "python/support/cpython.hpp"
#include "python/support/type.hpp"
#include "python/wrap_base.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_function_type = nullptr;
PyTypeObject* g_callable_type = nullptr;
PyTypeObject* g_object_type = nullptr;

// Which of a call's arguments, and which attributes of its `self`, go into the event.
struct CaptureSpec {
  struct Item {
    Ref name;             // interned
    Py_ssize_t position;  // among the positional arguments, -1: by keyword only
    bool is_parameter;
    Ref fallback;  // the declared default, empty without
  };
  std::vector<Item> items;
  bool from_self = false;
};

struct Function {
  WrapBase wrap;
  Ref shown;  // __wrapped__, which may be set
  RefTo<Node> node;
  Ref name;                         // of the events where it is not the node's
  dftracer_names* names = nullptr;  // the node's, or its own
  std::unique_ptr<OwnNames> own_names;
  std::unique_ptr<CaptureSpec> capture;
  Ref dict;
  PyObject* weak_references = nullptr;

  auto visits() { return std::tie(wrap.target, shown, node, dict); }
  // The target stays: a call of this function may be running.
  auto clears() { return std::tie(dict, shown); }
};

Function& function_of(PyObject* object) { return state_of<Function>(object); }

// The functions from here to call_suspended count references by hand, where they count at all: they
// run at every recorded call.

PyObject* call_target(const Function& function, PyObject* const* args, size_t count,
                      PyObject* keywords) {
  const UncountedCall uncounted;
  return PyObject_Vectorcall(function.wrap.target.get(), args, count, keywords);
}

PyObject* call_plain(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  Function& function = function_of(self);
  if (!function.node->enabled) [[unlikely]]
    return call_target(function, args, count, keywords);
  dftracer_region region;
  dftracer_open(&region, function.names);
  PyObject* result = call_target(function, args, count, keywords);
  close_region(region, *function.node);
  return result;
}

// The argument that the call passes for a parameter, or its default; borrowed, nullptr without.
PyObject* passed_argument(const CaptureSpec::Item& item, PyObject* const* args, Py_ssize_t count,
                          PyObject* keywords) {
  if (item.position >= 0 && item.position < count) return args[item.position];
  const Py_ssize_t keyword_count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < keyword_count; ++i) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
    if (keyword == item.name.get() || PyUnicode_Compare(keyword, item.name.get()) == 0)
      return args[count + i];
  }
  return item.fallback.get();
}

void capture_call(const CaptureSpec& capture, PyObject* const* args, Py_ssize_t count,
                  PyObject* keywords, std::string& out) {
  for (const CaptureSpec::Item& item : capture.items) {
    PyObject* value = item.is_parameter ? passed_argument(item, args, count, keywords) : nullptr;
    Py_XINCREF(value);
    if (value == nullptr && capture.from_self && count > 0)
      value = attribute_without_code(args[0], item.name.get()).release();
    if (value != nullptr && value != Py_None) append_argument(out, item.name.get(), value);
    Py_XDECREF(value);
  }
}

// The node keeps what its latest call captured: programs look at it, and the next call reuses its
// memory. Without a GIL, threads would have to take turns.
void take_captured([[maybe_unused]] Node& node, [[maybe_unused]] std::string& captured) {
#ifndef Py_GIL_DISABLED
  captured.swap(node.captured);
  captured.clear();
#endif
}
void keep_captured([[maybe_unused]] Node& node, [[maybe_unused]] std::string& captured) {
#ifndef Py_GIL_DISABLED
  captured.swap(node.captured);
#endif
}

PyObject* call_captured(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  Function& function = function_of(self);
  if (!function.node->enabled) [[unlikely]]
    return call_target(function, args, count, keywords);
  dftracer_region region;
  dftracer_open(&region, function.names);
  std::string captured;
  if (region.opaque[0] != 0) {
    take_captured(*function.node, captured);
    capture_call(*function.capture, args, PyVectorcall_NARGS(count), keywords, captured);
  }
  PyObject* result = call_target(function, args, count, keywords);
  close_region(region, *function.node, captured);
  keep_captured(*function.node, captured);
  return result;
}

// Generators and coroutines: the call makes one, and its life is the event.
template <Kind kind>
PyObject* call_suspended(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  Function& function = function_of(self);
  std::string captured;
  if (function.capture != nullptr && function.node->enabled)
    capture_call(*function.capture, args, PyVectorcall_NARGS(count), keywords, captured);
  PyObject* inner = call_target(function, args, count, keywords);
  if (inner == nullptr || !function.node->enabled) return inner;
  if (dftracer_active() == 0) {
    count_missed();
    return inner;
  }
  return new_suspendable(kind, Ref(inner), self, *function.node, *function.names, captured)
      .release();
}

// The call of each Kind.
constexpr vectorcallfunc kCalls[] = {
    call_plain, call_suspended<Kind::kGenerator>, call_suspended<Kind::kCoroutine>,
    call_suspended<Kind::kAsyncGenerator>, call_suspended<Kind::kIterableCoroutine>};
static_assert(std::size(kCalls) == std::size(kKindNames));

// A list of (name, position or None where it is no parameter, default...)
std::unique_ptr<CaptureSpec> read_capture(PyObject* list, bool from_self) {
  auto capture = std::make_unique<CaptureSpec>();
  capture->from_self = from_self;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) < 2 ||
        !PyUnicode_CheckExact(PyTuple_GET_ITEM(item, 0))) {
      continue;
    }
    Ref name = Ref::borrow(PyTuple_GET_ITEM(item, 0));
    intern_in_place(name);
    PyObject* position = PyTuple_GET_ITEM(item, 1);
    PyObject* fallback = PyTuple_GET_SIZE(item) > 2 ? PyTuple_GET_ITEM(item, 2) : nullptr;
    capture->items.push_back({std::move(name),
                              position != Py_None ? PyLong_AsSsize_t(position) : -1,
                              position != Py_None, Ref::borrow(fallback)});
  }
  return capture;
}

// Function(node, callable, kind, name=None, capture=None, from_self=False)
PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* node = nullptr;
  PyObject* callable = nullptr;
  int kind = 0;
  PyObject* name = Py_None;
  PyObject* capture = Py_None;
  int from_self = 0;
  if (!PyArg_ParseTuple(args, "O!Oi|OOp:Function", g_node_type, &node, &callable, &kind, &name,
                        &capture, &from_self)) {
    return nullptr;
  }
  if (PyCallable_Check(callable) == 0) {
    PyErr_SetString(PyExc_TypeError, "only a callable can be recorded");
    return nullptr;
  }
  Ref self = create<Function>(type);
  if (!self) return nullptr;
  Function& function = function_of(self.get());
  function.wrap.target = Ref::borrow(callable);
  function.shown = Ref::borrow(callable);
  function.node = RefTo<Node>::borrow(node_of(node));
  function.names = &function.node->names;
  if (name != Py_None) {
    function.name = Ref::borrow(name);
    function.own_names = std::make_unique<OwnNames>(name, *function.node);
    function.names = function.own_names->get();
  }
  if (PyList_Check(capture)) function.capture = read_capture(capture, from_self != 0);
  const bool known = kind >= 0 && kind < static_cast<int>(std::size(kCalls));
  function.wrap.call = kCalls[known ? kind : 0];
  if (function.wrap.call == call_plain && function.capture != nullptr)
    function.wrap.call = call_captured;
  return self.release();
}

// Binds as a function does.
PyObject* function_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return new_reference(self);
  return PyMethod_New(self, object);
}

// Binds as the target does: not at all, or in a way of its own.
PyObject* callable_get(PyObject* self, PyObject* object, PyObject* type) {
  Function& function = function_of(self);
  PyObject* target = function.wrap.target.get();
  const descrgetfunc get = Py_TYPE(target)->tp_descr_get;
  if (get == nullptr) return new_reference(self);
  Ref bound(get(target, object, type));
  if (bound.get() == target) return new_reference(self);
  if (!bound || PyCallable_Check(bound.get()) == 0) return bound.release();
  Ref recorded = create<Function>(Py_TYPE(self));
  if (!recorded) return nullptr;
  Function& other = function_of(recorded.get());
  other.shown = bound;
  other.wrap.target = std::move(bound);
  other.wrap.call = function.capture != nullptr ? call_plain : function.wrap.call;
  other.name = function.name;
  other.node = function.node;
  other.names = &function.node->names;
  if (function.own_names != nullptr) {
    other.own_names = std::make_unique<OwnNames>(function.own_names->text(), *function.node);
    other.names = other.own_names->get();
  }
  return recorded.release();
}

// Attributes that every type has would hide the function's.
PyObject* function_getattr(PyObject* self, PyObject* name) {
  PyObject* target = function_of(self).wrap.target.get();
  if (target != nullptr && PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) > 4 &&
      PyUnicode_READ_CHAR(name, 0) == '_') {
    if (PyUnicode_CompareWithASCIIString(name, "__module__") == 0)
      return PyObject_GetAttr(target, name);
  }
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || target == nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError))
    return found;
  PyErr_Clear();
  return PyObject_GetAttr(target, name);
}

// Setting an attribute of a wrapped object sets it on the object itself.
int callable_setattr(PyObject* self, PyObject* name, PyObject* value) {
  if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
    return PyObject_GenericSetAttr(self, name, value);
  return PyObject_SetAttr(function_of(self).wrap.target.get(), name, value);
}

PyObject* callable_compare(PyObject* self, PyObject* other, int operation) {
  if (Py_TYPE(other) == Py_TYPE(self)) {
    const bool same_node = function_of(self).node.get() == function_of(other).node.get();
    if (!same_node && operation == Py_EQ) Py_RETURN_FALSE;
    other = function_of(other).wrap.target.get();
  }
  return PyObject_RichCompare(function_of(self).wrap.target.get(), other, operation);
}
Py_hash_t callable_hash(PyObject* self) {
  return PyObject_Hash(function_of(self).wrap.target.get());
}
int callable_bool(PyObject* self) { return PyObject_IsTrue(function_of(self).wrap.target.get()); }

// The attributes that define a function are set on the target; any other is this object's own.
int function_setattr(PyObject* self, PyObject* name, PyObject* value) {
  if (!PyUnicode_Check(name)) return PyObject_GenericSetAttr(self, name, value);
  for (const char* shared : {"__module__", "__doc__", "__name__", "__qualname__", "__annotations__",
                             "__defaults__", "__kwdefaults__", "__code__"}) {
    if (PyUnicode_CompareWithASCIIString(name, shared) == 0)
      return PyObject_SetAttr(function_of(self).wrap.target.get(), name, value);
  }
  return PyObject_GenericSetAttr(self, name, value);
}

// Pickled by its name where that leads here, as a function is; otherwise by its parts.
PyObject* function_reduce(PyObject* self, PyObject*) {
  const Ref module(PyImport_ImportModule("dftracer.python._wrap"));
  if (!module) return nullptr;
  const Function& function = function_of(self);
  return PyObject_CallMethod(module.get(), "reduce", "OOOO", self, object_of(function.node.get()),
                             function.wrap.target.get(),
                             function.name ? function.name.get() : Py_None);
}
PyObject* function_reduce_ex(PyObject* self, PyObject*) { return function_reduce(self, nullptr); }

// cloudpickle, or the copies of it in joblib and Ray, takes everything that claims to be a function
// apart, and would send the target alone.
bool is_called_by_cloudpickle() {
  PyObject* globals = PyEval_GetGlobals();
  PyObject* name = globals != nullptr ? PyDict_GetItemString(globals, "__name__") : nullptr;
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  const Ref tail(PyUnicode_FromString("cloudpickle.cloudpickle"));
  if (!tail) {
    PyErr_Clear();
    return false;
  }
  return PyUnicode_Tailmatch(name, tail.get(), 0, PY_SSIZE_T_MAX, 1) == 1;
}

// isinstance(f, types.FunctionType), and with it inspect.isfunction and its kin, answers as for the
// target.
PyObject* function_class(PyObject* self, void*) {
  PyObject* seen = is_called_by_cloudpickle() ? self : function_of(self).wrap.target.get();
  return new_reference(reinterpret_cast<PyObject*>(Py_TYPE(seen)));
}

PyObject* function_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(function_of(self).wrap.target.get(), "__doc__");
}

PyMethodDef g_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr},
                           {"__reduce_ex__", function_reduce_ex, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyMemberDef g_members[] = {
    {"__wrapped__", T_OBJECT_EX, DFT_OFFSET(Function, shown), 0, nullptr},
    DFT_VECTORCALL_MEMBER(Function),
    {"__dictoffset__", T_PYSSIZET, DFT_OFFSET(Function, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, DFT_OFFSET(Function, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef g_getset[] = {
    {"__class__", function_class, nullptr, nullptr, nullptr},
    {"__doc__", function_doc, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// clang-format off
#define DFT_FUNCTION_SLOTS                                                                 \
  {Py_tp_new, as_slot(function_new)}, {Py_tp_dealloc, as_slot(deallocate<Function>)},      \
  {Py_tp_traverse, as_slot(traverse<Function>)}, {Py_tp_clear, as_slot(clear<Function>)},  \
  {Py_tp_call, as_slot(PyVectorcall_Call)}, {Py_tp_getattro, as_slot(function_getattr)},   \
  {Py_tp_repr, as_slot(wrapper_repr<Function>)}, {Py_tp_methods, g_methods},               \
  {Py_tp_members, g_members}, {Py_tp_getset, g_getset}
// clang-format on

PyType_Slot g_function_slots[] = {DFT_FUNCTION_SLOTS,
                                  {Py_tp_descr_get, as_slot(function_get)},
                                  {Py_tp_setattro, as_slot(function_setattr)},
                                  {0, nullptr}};
PyType_Spec g_function_spec = {"dftracer._core.Function", sizeof(Object<Function>), 0,
                               kWrapperFlags | Py_TPFLAGS_METHOD_DESCRIPTOR, g_function_slots};
// clang-format off
#define DFT_OBJECT_SLOTS                                                                   \
  DFT_FUNCTION_SLOTS, {Py_tp_setattro, as_slot(callable_setattr)},                         \
  {Py_tp_richcompare, as_slot(callable_compare)}, {Py_tp_hash, as_slot(callable_hash)},    \
  {Py_nb_bool, as_slot(callable_bool)}
// clang-format on

// A callable that binds in a way of its own, and one that does not bind at all.
PyType_Slot g_callable_slots[] = {
    DFT_OBJECT_SLOTS, {Py_tp_descr_get, as_slot(callable_get)}, {0, nullptr}};
PyType_Spec g_callable_spec = {"dftracer._core.Callable", sizeof(Object<Function>), 0,
                               kWrapperFlags, g_callable_slots};
PyType_Slot g_object_slots[] = {DFT_OBJECT_SLOTS, {0, nullptr}};
PyType_Spec g_object_spec = {"dftracer._core.CallableObject", sizeof(Object<Function>), 0,
                             kWrapperFlags, g_object_slots};

}  // namespace

bool add_function_types(PyObject* module) {
  if (g_function_type == nullptr) {
    g_function_type = make_type(g_function_spec);
    g_callable_type = make_type(g_callable_spec);
    g_object_type = make_type(g_object_spec);
    if (g_function_type == nullptr || g_callable_type == nullptr || g_object_type == nullptr)
      return false;
  }
  for (const KindName& kind : kKindNames) {
    if (PyModule_AddIntConstant(module, kind.name, static_cast<long>(kind.kind)) != 0) return false;
  }
  return add_type(module, "Function", g_function_type) &&
         add_type(module, "Callable", g_callable_type) &&
         add_type(module, "CallableObject", g_object_type);
}

}  // namespace dft::python
