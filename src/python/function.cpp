// Callables that are recorded: a call costs two clock reads and a record, not Python code, and adds
// no frame to a traceback. To everybody who asks, such an object is the function that it wraps.
#include "python/function.hpp"

#include <new>
#include <string>
#include <vector>

#include "python/generator.hpp"
#include "python/types.hpp"

namespace dft::python {

PyTypeObject* g_function_type = nullptr;
PyTypeObject* g_callable_type = nullptr;
PyTypeObject* g_object_type = nullptr;

namespace {

// Which of a call's arguments, and which attributes of its `self`, go into the event.
struct Capture {
  struct Name {
    PyObject* name;       // interned
    Py_ssize_t position;  // among the positional arguments, -1: by keyword only
    bool parameter;
    PyObject* fallback;  // the declared default, nullptr without
  };
  std::vector<Name> names;
  bool from_self = false;
};

struct Function {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject* wrapped;
  PyObject* shown;  // __wrapped__, which may be set
  Node* node;
  PyObject* name;         // of the events where it is not the node's
  dftracer_names* names;  // the node's, or its own
  OwnNames* own_names;
  Capture* capture;
  PyObject* dict;
  PyObject* weak;
};

Function* function_of(PyObject* object) { return reinterpret_cast<Function*>(object); }

// CPython 3.12 and 3.13 count calls that come from C apart, against a limit of their own that
// nobody can set. A recorded call is the user's call, which the ordinary limit counts.
PyObject* call_wrapped(const Function& function, PyObject* const* args, size_t count,
                       PyObject* keywords) {
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
  PyThreadState* thread = PyThreadState_Get();
  thread->c_recursion_remaining += 2;
  PyObject* result = PyObject_Vectorcall(function.wrapped, args, count, keywords);
  thread->c_recursion_remaining -= 2;
  return result;
#else
  return PyObject_Vectorcall(function.wrapped, args, count, keywords);
#endif
}

PyObject* call_plain(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  Function& function = *function_of(self);
  if (!function.node->enabled) [[unlikely]]
    return call_wrapped(function, args, count, keywords);
  dftracer_region region;
  dftracer_open(&region, function.names);
  PyObject* result = call_wrapped(function, args, count, keywords);
  close_region(region, *function.node);
  return result;
}

// An attribute, found without running anybody's code: in the object's own dictionary, in a slot, or
// as a plain value of its class.
PyObject* quiet_attribute(PyObject* object, PyObject* name) {
  PyObject** dict = _PyObject_GetDictPtr(object);
  PyObject* found = nullptr;
  if (dict != nullptr && *dict != nullptr) {
    found = PyDict_GetItemWithError(*dict, name);
    Py_XINCREF(found);
  } else if (dict == nullptr && Py_TYPE(object)->tp_getattro == PyObject_GenericGetAttr) {
    PyObject* own = PyObject_GenericGetDict(object, nullptr);
    if (own != nullptr && PyDict_Check(own)) {
      found = PyDict_GetItemWithError(own, name);
      Py_XINCREF(found);
    }
    Py_XDECREF(own);
  }
  PyErr_Clear();
  if (found != nullptr) return found;
  PyObject* of_class = _PyType_Lookup(Py_TYPE(object), name);
  if (of_class == nullptr) return nullptr;
  if (Py_TYPE(of_class) == &PyMemberDescr_Type) {
    found = Py_TYPE(of_class)->tp_descr_get(of_class, object,
                                            reinterpret_cast<PyObject*>(Py_TYPE(object)));
    PyErr_Clear();
    return found;
  }
  if (Py_TYPE(of_class)->tp_descr_get != nullptr) return nullptr;
  Py_INCREF(of_class);
  return of_class;
}

void capture_call(const Capture& capture, PyObject* const* args, Py_ssize_t count,
                  PyObject* keywords, std::string& out) {
  const Py_ssize_t keyword_count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  for (const Capture::Name& wanted : capture.names) {
    PyObject* value = nullptr;
    if (wanted.parameter) {
      if (wanted.position >= 0 && wanted.position < count) value = args[wanted.position];
      for (Py_ssize_t i = 0; value == nullptr && i < keyword_count; ++i) {
        PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
        if (keyword == wanted.name || PyUnicode_Compare(keyword, wanted.name) == 0)
          value = args[count + i];
      }
      if (value == nullptr) value = wanted.fallback;
      Py_XINCREF(value);
    }
    if (value == nullptr && capture.from_self && count > 0)
      value = quiet_attribute(args[0], wanted.name);
    if (value != nullptr && value != Py_None) append_argument(out, wanted.name, value);
    Py_XDECREF(value);
  }
}

// The node keeps what its latest call said: programs look at it, and its memory serves the next
// call. Without a GIL, threads would have to take turns.
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
  Function& function = *function_of(self);
  if (!function.node->enabled) [[unlikely]]
    return call_wrapped(function, args, count, keywords);
  dftracer_region region;
  dftracer_open(&region, function.names);
  std::string captured;
  if (region.opaque[0] != 0) {
    take_captured(*function.node, captured);
    capture_call(*function.capture, args, PyVectorcall_NARGS(count), keywords, captured);
  }
  PyObject* result = call_wrapped(function, args, count, keywords);
  close_region(region, *function.node, captured);
  keep_captured(*function.node, captured);
  return result;
}

// Generators and coroutines: the call makes one, and it is what is recorded.
template <Resumed kind>
PyObject* call_suspended(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  Function& function = *function_of(self);
  std::string captured;
  if (function.capture != nullptr && function.node->enabled)
    capture_call(*function.capture, args, PyVectorcall_NARGS(count), keywords, captured);
  PyObject* inner = call_wrapped(function, args, count, keywords);
  if (inner == nullptr || !function.node->enabled) return inner;
  if (dftracer_active() == 0) {
    count_missed();
    return inner;
  }
  return new_suspended(kind, inner, self, *function.node, *function.names, captured);
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
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Function& function = *function_of(self);
  Py_INCREF(callable);
  function.wrapped = callable;
  Py_INCREF(callable);
  function.shown = callable;
  Py_INCREF(node);
  function.node = node_of(node);
  function.names = &function.node->names;
  if (name != Py_None) {
    PyObject* held = nullptr;
    Py_INCREF(name);
    function.name = name;
    function.own_names = new OwnNames;
    function.own_names->set(text_of(name, held), *function.node);
    function.names = function.own_names->get();
    Py_XDECREF(held);
  }
  if (PyList_Check(capture)) {
    function.capture = new Capture;
    function.capture->from_self = from_self != 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(capture); ++i) {
      // (name, position or None where it is no parameter, default...)
      PyObject* item = PyList_GET_ITEM(capture, i);
      if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) < 2 ||
          !PyUnicode_CheckExact(PyTuple_GET_ITEM(item, 0))) {
        continue;
      }
      PyObject* what = PyTuple_GET_ITEM(item, 0);
      PyObject* position = PyTuple_GET_ITEM(item, 1);
      PyObject* fallback = PyTuple_GET_SIZE(item) > 2 ? PyTuple_GET_ITEM(item, 2) : nullptr;
      Py_INCREF(what);
      PyUnicode_InternInPlace(&what);
      Py_XINCREF(fallback);
      function.capture->names.push_back({what,
                                         position != Py_None ? PyLong_AsSsize_t(position) : -1,
                                         position != Py_None, fallback});
    }
  }
  constexpr vectorcallfunc kCalls[] = {
      call_plain, call_suspended<Resumed::kGenerator>, call_suspended<Resumed::kCoroutine>,
      call_suspended<Resumed::kAsyncGenerator>, call_suspended<Resumed::kIterableCoroutine>};
  function.call = kind >= 0 && kind < 5 ? kCalls[kind] : call_plain;
  if (function.call == call_plain && function.capture != nullptr) function.call = call_captured;
  return self;
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(function_of(self)->wrapped);
  Py_VISIT(function_of(self)->shown);
  Py_VISIT(function_of(self)->node);
  Py_VISIT(function_of(self)->dict);
  return 0;
}

int function_clear(PyObject* self) {
  Function& function = *function_of(self);
  Py_CLEAR(function.dict);
  Py_CLEAR(function.shown);
  return 0;
}

void function_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Function& function = *function_of(self);
  if (function.weak != nullptr) PyObject_ClearWeakRefs(self);
  function_clear(self);
  Py_CLEAR(function.wrapped);
  Py_CLEAR(function.node);
  Py_CLEAR(function.name);
  if (function.capture != nullptr) {
    for (Capture::Name& name : function.capture->names) {
      Py_DECREF(name.name);
      Py_XDECREF(name.fallback);
    }
    delete function.capture;
  }
  delete function.own_names;
  type->tp_free(self);
  Py_DECREF(type);
}

// As a function binds.
PyObject* function_get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

// As the wrapped object binds: not at all, or in a way of its own.
PyObject* callable_get(PyObject* self, PyObject* object, PyObject* type) {
  Function& function = *function_of(self);
  const descrgetfunc get = Py_TYPE(function.wrapped)->tp_descr_get;
  if (get == nullptr) {
    Py_INCREF(self);
    return self;
  }
  PyObject* bound = get(function.wrapped, object, type);
  if (bound == nullptr || bound == function.wrapped || PyCallable_Check(bound) == 0) {
    if (bound != function.wrapped) return bound;
    Py_DECREF(bound);
    Py_INCREF(self);
    return self;
  }
  PyObject* recorded = Py_TYPE(self)->tp_alloc(Py_TYPE(self), 0);
  if (recorded == nullptr) {
    Py_DECREF(bound);
    return nullptr;
  }
  Function& other = *function_of(recorded);
  other.wrapped = bound;
  Py_INCREF(bound);
  other.shown = bound;
  Py_XINCREF(function.name);
  other.name = function.name;
  Py_INCREF(function.node);
  other.node = function.node;
  other.call = function.capture != nullptr ? call_plain : function.call;
  other.names = &function.node->names;
  if (function.own_names != nullptr) {
    other.own_names = new OwnNames(*function.own_names);
    const dftracer_names* names = function.own_names->get();
    other.own_names->set({names->name, names->name_size}, *function.node);
    other.names = other.own_names->get();
  }
  return recorded;
}

// What a type has of its own hides what the function says of itself.
PyObject* function_getattr(PyObject* self, PyObject* name) {
  Function& function = *function_of(self);
  if (function.wrapped != nullptr && PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) > 4 &&
      PyUnicode_READ_CHAR(name, 0) == '_') {
    if (PyUnicode_CompareWithASCIIString(name, "__module__") == 0)
      return PyObject_GetAttr(function.wrapped, name);
  }
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || function.wrapped == nullptr ||
      !PyErr_ExceptionMatches(PyExc_AttributeError)) {
    return found;
  }
  PyErr_Clear();
  return PyObject_GetAttr(function.wrapped, name);
}

// An object that can be called is the object that it was, whoever sets an attribute of it.
int callable_setattr(PyObject* self, PyObject* name, PyObject* value) {
  if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
    return PyObject_GenericSetAttr(self, name, value);
  return PyObject_SetAttr(function_of(self)->wrapped, name, value);
}

PyObject* callable_compare(PyObject* self, PyObject* other, int operation) {
  if (Py_TYPE(other) == Py_TYPE(self)) {
    if (function_of(self)->node != function_of(other)->node && operation == Py_EQ) Py_RETURN_FALSE;
    other = function_of(other)->wrapped;
  }
  return PyObject_RichCompare(function_of(self)->wrapped, other, operation);
}
Py_hash_t callable_hash(PyObject* self) { return PyObject_Hash(function_of(self)->wrapped); }
int callable_bool(PyObject* self) { return PyObject_IsTrue(function_of(self)->wrapped); }

// Names of the function are the function's; anything else is this object's own.
int function_setattr(PyObject* self, PyObject* name, PyObject* value) {
  Function& function = *function_of(self);
  if (!PyUnicode_Check(name)) return PyObject_GenericSetAttr(self, name, value);
  for (const char* shared : {"__module__", "__doc__", "__name__", "__qualname__", "__annotations__",
                             "__defaults__", "__kwdefaults__", "__code__"}) {
    if (PyUnicode_CompareWithASCIIString(name, shared) == 0)
      return PyObject_SetAttr(function.wrapped, name, value);
  }
  return PyObject_GenericSetAttr(self, name, value);
}

PyObject* function_repr(PyObject* self) {
  return PyUnicode_FromFormat("<recorded %R>", function_of(self)->wrapped);
}

// Pickled by its name where that leads here, as a function is; otherwise by its parts.
PyObject* function_reduce(PyObject* self, PyObject*) {
  PyObject* module = PyImport_ImportModule("dftracer.python._wrap");
  if (module == nullptr) return nullptr;
  Function& function = *function_of(self);
  PyObject* result =
      PyObject_CallMethod(module, "reduce", "OOOO", self, function.node, function.wrapped,
                          function.name != nullptr ? function.name : Py_None);
  Py_DECREF(module);
  return result;
}
PyObject* function_reduce_ex(PyObject* self, PyObject*) { return function_reduce(self, nullptr); }

// cloudpickle, or the copies of it that joblib and Ray bring along: it takes what says that it is a
// function to pieces, and would send the wrapped one alone.
bool asked_by_cloudpickle() {
  PyObject* globals = PyEval_GetGlobals();
  PyObject* name = globals != nullptr ? PyDict_GetItemString(globals, "__name__") : nullptr;
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  PyObject* tail = PyUnicode_FromString("cloudpickle.cloudpickle");
  if (tail == nullptr) {
    PyErr_Clear();
    return false;
  }
  const bool ends = PyUnicode_Tailmatch(name, tail, 0, PY_SSIZE_T_MAX, 1) == 1;
  Py_DECREF(tail);
  return ends;
}

// isinstance(f, types.FunctionType), and so inspect.isfunction and its kin, say what they say of
// the wrapped object.
PyObject* function_class(PyObject* self, void*) {
  PyObject* seen = asked_by_cloudpickle() ? self : function_of(self)->wrapped;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(seen));
  Py_INCREF(type);
  return type;
}

PyMethodDef g_methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr},
                           {"__reduce_ex__", function_reduce_ex, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyMemberDef g_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(Function, shown), 0, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyObject* function_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(function_of(self)->wrapped, "__doc__");
}

PyGetSetDef g_getset[] = {
    {"__class__", function_class, nullptr, nullptr, nullptr},
    {"__doc__", function_doc, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// clang-format off
#define DFT_FUNCTION_SLOTS                                                                 \
  {Py_tp_new, as_slot(function_new)}, {Py_tp_dealloc, as_slot(function_dealloc)},          \
  {Py_tp_traverse, as_slot(function_traverse)}, {Py_tp_clear, as_slot(function_clear)},    \
  {Py_tp_call, as_slot(PyVectorcall_Call)}, {Py_tp_getattro, as_slot(function_getattr)},   \
  {Py_tp_repr, as_slot(function_repr)}, {Py_tp_methods, g_methods},                        \
  {Py_tp_members, g_members}, {Py_tp_getset, g_getset}
// clang-format on

#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL _Py_TPFLAGS_HAVE_VECTORCALL
#endif

constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
PyType_Slot g_function_slots[] = {DFT_FUNCTION_SLOTS,
                                  {Py_tp_descr_get, as_slot(function_get)},
                                  {Py_tp_setattro, as_slot(function_setattr)},
                                  {0, nullptr}};
PyType_Spec g_function_spec = {"dftracer._core.Function", sizeof(Function), 0,
                               kFlags | Py_TPFLAGS_METHOD_DESCRIPTOR, g_function_slots};
// clang-format off
#define DFT_OBJECT_SLOTS                                                                   \
  DFT_FUNCTION_SLOTS, {Py_tp_setattro, as_slot(callable_setattr)},                         \
  {Py_tp_richcompare, as_slot(callable_compare)}, {Py_tp_hash, as_slot(callable_hash)},    \
  {Py_nb_bool, as_slot(callable_bool)}
// clang-format on

// What binds in a way of its own, and what does not bind at all.
PyType_Slot g_callable_slots[] = {
    DFT_OBJECT_SLOTS, {Py_tp_descr_get, as_slot(callable_get)}, {0, nullptr}};
PyType_Spec g_callable_spec = {"dftracer._core.Callable", sizeof(Function), 0, kFlags,
                               g_callable_slots};
PyType_Slot g_object_slots[] = {DFT_OBJECT_SLOTS, {0, nullptr}};
PyType_Spec g_object_spec = {"dftracer._core.CallableObject", sizeof(Function), 0, kFlags,
                             g_object_slots};

}  // namespace

bool add_function_types(PyObject* module) {
  if (g_function_type == nullptr) {
    g_function_type = make_type(g_function_spec);
    g_callable_type = make_type(g_callable_spec);
    g_object_type = make_type(g_object_spec);
    if (g_function_type == nullptr || g_callable_type == nullptr || g_object_type == nullptr)
      return false;
  }
  return add_type(module, "Function", g_function_type) &&
         add_type(module, "Callable", g_callable_type) &&
         add_type(module, "CallableObject", g_object_type);
}

}  // namespace dft::python
