#include "python/generator.hpp"

#include <new>

#include "python/types.hpp"

namespace dft::python {
namespace {

enum class State : char { kFresh, kAway, kInside, kOver };

struct Suspended {
  PyObject_HEAD;
  PyObject* inner;
  PyObject* owner;
  Node* node;
  dftracer_names* names;
  std::string captured;
  dftracer_region region;
  dftracer_before before;  // where the thread was when it was resumed
  dftracer_inside inside;  // what was open inside it when it was left
  bool moved;              // it is not where it began: `before` holds
  std::uint64_t resumed;
  std::uint64_t busy;
  long long count;
  State state;
  bool yields;  // has items: a coroutine has none
  PyObject* weak;
};

// One __anext__, asend, athrow or aclose of an asynchronous generator.
struct Step {
  PyObject_HEAD;
  PyObject* inner;
  Suspended* of;
  bool last;  // aclose: nothing follows
};

PyTypeObject* g_generator_type = nullptr;
PyTypeObject* g_coroutine_type = nullptr;
PyTypeObject* g_iterable_type = nullptr;
PyTypeObject* g_async_type = nullptr;
PyTypeObject* g_step_type = nullptr;
PyObject* g_busy = nullptr;
PyObject* g_send = nullptr;
PyObject* g_throw = nullptr;
PyObject* g_close = nullptr;

Suspended* suspended_of(PyObject* object) { return reinterpret_cast<Suspended*>(object); }
Step* step_of(PyObject* object) { return reinterpret_cast<Step*>(object); }

void go_in(Suspended& s) {
  if (s.state == State::kFresh) {
    dftracer_open(&s.region, s.names);
  } else if (s.state == State::kAway) {
    dftracer_resume(&s.region, &s.inside, &s.before);
    s.moved = true;
  } else {
    return;
  }
  s.state = State::kInside;
  s.resumed = dftracer_ticks();
}

void go_out(Suspended& s) {
  if (s.state != State::kInside) return;
  s.busy += dftracer_ticks() - s.resumed;
  dftracer_suspend(&s.region, s.moved ? &s.before : nullptr, &s.inside);
  s.state = State::kAway;
}

void finish(Suspended& s) {
  if (s.state == State::kOver) return;
  const bool began = s.state != State::kFresh;
  if (s.state == State::kInside) {
    s.busy += dftracer_ticks() - s.resumed;
    // Entered again, it is not where it was: it leaves the stack before it ends.
    if (s.moved) dftracer_suspend(&s.region, &s.before, &s.inside);
  }
  s.state = State::kOver;
  if (!began || s.region.opaque[0] == 0) return;
  std::string more = std::move(s.captured);
  if (s.yields) {
    KeepError keep;
    append_int(more, g_count, s.count);
    append_ticks(more, g_busy, s.busy);
  }
  close_region(s.region, *s.node, more);
}

void raise_stop(PyObject* value) {
  PyObject* stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, nullptr);
  if (stop == nullptr) return;
  PyErr_SetObject(PyExc_StopIteration, stop);
  Py_DECREF(stop);
}

enum class Outcome { kItem, kReturn, kError };

// Runs an iterator or a coroutine up to its next item.
Outcome advance(PyObject* inner, PyObject* value, PyObject*& result) {
#if PY_VERSION_HEX >= 0x030a0000
  switch (PyIter_Send(inner, value, &result)) {
    case PYGEN_NEXT:
      return Outcome::kItem;
    case PYGEN_RETURN:
      return Outcome::kReturn;
    default:
      return Outcome::kError;
  }
#else
  if (value == Py_None && Py_TYPE(inner)->tp_iternext != nullptr) {
    result = Py_TYPE(inner)->tp_iternext(inner);
  } else {
    result = PyObject_CallMethodOneArg(inner, g_send, value);
  }
  if (result != nullptr) return Outcome::kItem;
  if (PyErr_Occurred() != nullptr && !PyErr_ExceptionMatches(PyExc_StopIteration))
    return Outcome::kError;
  PyObject *type = nullptr, *stop = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &stop, &traceback);
  if (type != nullptr) PyErr_NormalizeException(&type, &stop, &traceback);
  result = stop != nullptr ? PyObject_GetAttrString(stop, "value") : nullptr;
  if (result == nullptr) {
    PyErr_Clear();
    Py_INCREF(Py_None);
    result = Py_None;
  }
  Py_XDECREF(type);
  Py_XDECREF(stop);
  Py_XDECREF(traceback);
  return Outcome::kReturn;
#endif
}

// Whether the inner one has ended. Not every exception says so: one that is asked while it runs, or
// given a value before it began, refuses and lives on.
bool is_over(PyObject* inner) {
  KeepError keep;
  for (const char* name : {"gi_frame", "cr_frame", "ag_frame"}) {
    PyObject* frame = PyObject_GetAttrString(inner, name);
    if (frame == nullptr) {
      PyErr_Clear();
      continue;
    }
    Py_DECREF(frame);
    return frame == Py_None;
  }
  return true;
}

// After the inner one has run: is it suspended again, or over?
void after(Suspended& s, Outcome outcome) {
  if (outcome == Outcome::kItem) {
    ++s.count;
    go_out(s);
  } else if (outcome == Outcome::kReturn || s.inner == nullptr || is_over(s.inner)) {
    finish(s);
  } else {
    go_out(s);
  }
}

Outcome run(Suspended& s, PyObject* value, PyObject*& result) {
  if (s.inner == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "it was cleared by the garbage collector");
    return Outcome::kError;
  }
  const bool again = s.state == State::kInside;  // asked by itself while it runs
  if (!again) go_in(s);
  const Outcome outcome = advance(s.inner, value, result);
  if (!again) after(s, outcome);
  return outcome;
}

// As the iterator protocol wants it: no item and no exception is the end.
PyObject* as_next(Outcome outcome, PyObject* result) {
  if (outcome != Outcome::kReturn) return outcome == Outcome::kItem ? result : nullptr;
  if (result != Py_None) raise_stop(result);
  Py_DECREF(result);
  return nullptr;
}
PyObject* as_sent(Outcome outcome, PyObject* result) {
  if (outcome != Outcome::kReturn) return outcome == Outcome::kItem ? result : nullptr;
  raise_stop(result);
  Py_DECREF(result);
  return nullptr;
}

PyObject* suspended_next(PyObject* self) {
  PyObject* result = nullptr;
  const Outcome outcome = run(*suspended_of(self), Py_None, result);
  return as_next(outcome, result);
}

PyObject* suspended_send(PyObject* self, PyObject* value) {
  PyObject* result = nullptr;
  const Outcome outcome = run(*suspended_of(self), value, result);
  return as_sent(outcome, result);
}

#if PY_VERSION_HEX >= 0x030a0000
PySendResult as_send_result(Outcome outcome) {
  return outcome == Outcome::kItem     ? PYGEN_NEXT
         : outcome == Outcome::kReturn ? PYGEN_RETURN
                                       : PYGEN_ERROR;
}
PySendResult suspended_am_send(PyObject* self, PyObject* value, PyObject** result) {
  return as_send_result(run(*suspended_of(self), value, *result));
}
#endif

PyObject* call_with(PyObject* object, PyObject* method, PyObject* args) {
  PyObject* bound = PyObject_GetAttr(object, method);
  if (bound == nullptr) return nullptr;
  PyObject* result = PyObject_Call(bound, args, nullptr);
  Py_DECREF(bound);
  return result;
}

PyObject* suspended_throw(PyObject* self, PyObject* args) {
  Suspended& s = *suspended_of(self);
  if (s.inner == nullptr) Py_RETURN_NONE;
  const bool again = s.state == State::kInside;
  if (!again) go_in(s);
  PyObject* result = call_with(s.inner, g_throw, args);
  if (!again) after(s, result != nullptr ? Outcome::kItem : Outcome::kError);
  return result;
}

PyObject* suspended_close(PyObject* self, PyObject*) {
  Suspended& s = *suspended_of(self);
  if (s.inner == nullptr) Py_RETURN_NONE;
  const bool again = s.state == State::kInside;
  if (s.state == State::kAway) go_in(s);
  PyObject* result = PyObject_CallMethodNoArgs(s.inner, g_close);
  if (!again) finish(s);
  return result;
}

PyObject* itself(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyObject* suspended_getattr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  Suspended& s = *suspended_of(self);
  if (found != nullptr || s.inner == nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError))
    return found;
  PyErr_Clear();
  return PyObject_GetAttr(s.inner, name);
}

PyObject* suspended_class(PyObject* self, void*) {
  PyObject* inner = suspended_of(self)->inner;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(inner != nullptr ? inner : self));
  Py_INCREF(type);
  return type;
}

PyObject* suspended_repr(PyObject* self) {
  PyObject* inner = suspended_of(self)->inner;
  return PyUnicode_FromFormat("<recorded %R>", inner != nullptr ? inner : Py_None);
}

int suspended_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(suspended_of(self)->inner);
  Py_VISIT(suspended_of(self)->owner);
  Py_VISIT(suspended_of(self)->node);
  return 0;
}

// Dropped before its end: what the inner one does when it is closed is still inside the event.
void suspended_finalize(PyObject* self) {
  Suspended& s = *suspended_of(self);
  if (s.inner == nullptr || s.state == State::kOver) return;
  KeepError keep;
  if (s.state == State::kAway) {
    go_in(s);
    if (s.yields && Py_REFCNT(s.inner) == 1 &&
        PyObject_HasAttr(s.inner, g_close)) {  // an asynchronous one is closed by its loop
      PyObject* result = PyObject_CallMethodNoArgs(s.inner, g_close);
      if (result == nullptr) PyErr_WriteUnraisable(s.inner);
      Py_XDECREF(result);
    }
    finish(s);
  }
}

int suspended_clear(PyObject* self) {
  Suspended& s = *suspended_of(self);
  Py_CLEAR(s.inner);
  return 0;
}

void suspended_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (PyObject_CallFinalizerFromDealloc(self) < 0) return;
  PyObject_GC_UnTrack(self);
  Suspended& s = *suspended_of(self);
  if (s.weak != nullptr) PyObject_ClearWeakRefs(self);
  suspended_clear(self);
  if (s.state == State::kAway || s.state == State::kInside) dftracer_region_drop(&s.region);
  Py_CLEAR(s.owner);
  Py_CLEAR(s.node);
  using std::string;
  s.captured.~string();
  type->tp_free(self);
  Py_DECREF(type);
}

// ---- Steps of an asynchronous generator ----

PyObject* new_step(Suspended& s, PyObject* awaitable, bool last) {
  if (awaitable == nullptr) return nullptr;
  PyObject* object = g_step_type->tp_alloc(g_step_type, 0);
  if (object == nullptr) return awaitable;
  Step& step = *step_of(object);
  step.inner = awaitable;
  Py_INCREF(&s);
  step.of = &s;
  step.last = last;
  return object;
}

PyObject* async_next(PyObject* self) {
  Suspended& s = *suspended_of(self);
  return new_step(s, Py_TYPE(s.inner)->tp_as_async->am_anext(s.inner), false);
}
PyObject* async_asend(PyObject* self, PyObject* value) {
  Suspended& s = *suspended_of(self);
  return new_step(s, PyObject_CallMethod(s.inner, "asend", "O", value), false);
}
PyObject* async_athrow(PyObject* self, PyObject* args) {
  Suspended& s = *suspended_of(self);
  PyObject* bound = PyObject_GetAttrString(s.inner, "athrow");
  if (bound == nullptr) return nullptr;
  PyObject* awaitable = PyObject_Call(bound, args, nullptr);
  Py_DECREF(bound);
  return new_step(s, awaitable, false);
}
PyObject* async_aclose(PyObject* self, PyObject*) {
  Suspended& s = *suspended_of(self);
  return new_step(s, PyObject_CallMethod(s.inner, "aclose", nullptr), true);
}

// The awaited thing yields to the loop (suspended, no item), returns an item, or raises.
void after_step(Step& step, Outcome outcome) {
  Suspended& s = *step.of;
  if (outcome == Outcome::kReturn && !step.last) ++s.count;
  const bool over = outcome == Outcome::kReturn
                        ? step.last
                        : outcome == Outcome::kError && (s.inner == nullptr || is_over(s.inner));
  if (over) {
    finish(s);
  } else {
    go_out(s);
  }
}

Outcome run_step(Step& step, PyObject* value, PyObject*& result) {
  const bool again = step.of->state == State::kInside;
  if (!again && (!step.last || step.of->state == State::kAway)) go_in(*step.of);
  const Outcome outcome = advance(step.inner, value, result);
  if (!again) after_step(step, outcome);
  return outcome;
}

PyObject* step_next(PyObject* self) {
  PyObject* result = nullptr;
  const Outcome outcome = run_step(*step_of(self), Py_None, result);
  return as_next(outcome, result);
}
PyObject* step_send(PyObject* self, PyObject* value) {
  PyObject* result = nullptr;
  const Outcome outcome = run_step(*step_of(self), value, result);
  return as_sent(outcome, result);
}
#if PY_VERSION_HEX >= 0x030a0000
PySendResult step_am_send(PyObject* self, PyObject* value, PyObject** result) {
  return as_send_result(run_step(*step_of(self), value, *result));
}
#endif
PyObject* step_throw(PyObject* self, PyObject* args) {
  Step& step = *step_of(self);
  const bool again = step.of->state == State::kInside;
  if (!again) go_in(*step.of);
  PyObject* result = call_with(step.inner, g_throw, args);
  if (again) return result;
  const bool returned = result == nullptr && PyErr_ExceptionMatches(PyExc_StopIteration);
  after_step(step, result != nullptr ? Outcome::kItem
                   : returned        ? Outcome::kReturn
                                     : Outcome::kError);
  return result;
}
PyObject* step_close(PyObject* self, PyObject*) {
  return PyObject_CallMethodNoArgs(step_of(self)->inner, g_close);
}
int step_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(step_of(self)->inner);
  Py_VISIT(step_of(self)->of);
  return 0;
}
void step_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(step_of(self)->inner);
  Py_CLEAR(step_of(self)->of);
  type->tp_free(self);
  Py_DECREF(type);
}

// ---- Types ----

PyMemberDef g_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Suspended, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef g_getset[] = {{"__class__", suspended_class, nullptr, nullptr, nullptr},
                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef g_methods[] = {{"send", suspended_send, METH_O, nullptr},
                           {"throw", suspended_throw, METH_VARARGS, nullptr},
                           {"close", suspended_close, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyMethodDef g_async_methods[] = {{"asend", async_asend, METH_O, nullptr},
                                 {"athrow", async_athrow, METH_VARARGS, nullptr},
                                 {"aclose", async_aclose, METH_NOARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyMethodDef g_step_methods[] = {{"send", step_send, METH_O, nullptr},
                                {"throw", step_throw, METH_VARARGS, nullptr},
                                {"close", step_close, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

#define DFT_COMMON_SLOTS                                                                      \
  {Py_tp_dealloc, as_slot(suspended_dealloc)}, {Py_tp_traverse, as_slot(suspended_traverse)}, \
      {Py_tp_finalize, as_slot(suspended_finalize)}, {Py_tp_clear, as_slot(suspended_clear)}, \
      {Py_tp_getattro, as_slot(suspended_getattr)}, {Py_tp_repr, as_slot(suspended_repr)},    \
      {Py_tp_members, g_members}, {                                                           \
    Py_tp_getset, g_getset                                                                    \
  }
#if PY_VERSION_HEX >= 0x030a0000
#define DFT_SEND_SLOT(function) {Py_am_send, as_slot(function)},
#else
#define DFT_SEND_SLOT(function)
#endif

PyType_Slot g_generator_slots[] = {DFT_COMMON_SLOTS,
                                   {Py_tp_methods, g_methods},
                                   {Py_tp_iter, as_slot(itself)},
                                   {Py_tp_iternext, as_slot(suspended_next)},
                                   DFT_SEND_SLOT(suspended_am_send){0, nullptr}};
PyType_Slot g_coroutine_slots[] = {DFT_COMMON_SLOTS,
                                   {Py_tp_methods, g_methods},
                                   {Py_am_await, as_slot(itself)},
                                   {Py_tp_iternext, as_slot(suspended_next)},
                                   DFT_SEND_SLOT(suspended_am_send){0, nullptr}};
PyType_Slot g_iterable_slots[] = {DFT_COMMON_SLOTS,
                                  {Py_tp_methods, g_methods},
                                  {Py_am_await, as_slot(itself)},
                                  {Py_tp_iter, as_slot(itself)},
                                  {Py_tp_iternext, as_slot(suspended_next)},
                                  DFT_SEND_SLOT(suspended_am_send){0, nullptr}};
PyType_Slot g_async_slots[] = {DFT_COMMON_SLOTS,
                               {Py_tp_methods, g_async_methods},
                               {Py_am_aiter, as_slot(itself)},
                               {Py_am_anext, as_slot(async_next)},
                               {0, nullptr}};
PyType_Slot g_step_slots[] = {
    {Py_tp_dealloc, as_slot(step_dealloc)}, {Py_tp_traverse, as_slot(step_traverse)},
    {Py_tp_methods, g_step_methods},        {Py_am_await, as_slot(itself)},
    {Py_tp_iter, as_slot(itself)},          {Py_tp_iternext, as_slot(step_next)},
    DFT_SEND_SLOT(step_am_send){0, nullptr}};

constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
PyType_Spec g_generator_spec = {"dftracer._core.Generator", sizeof(Suspended), 0, kFlags,
                                g_generator_slots};
PyType_Spec g_coroutine_spec = {"dftracer._core.Coroutine", sizeof(Suspended), 0, kFlags,
                                g_coroutine_slots};
PyType_Spec g_iterable_spec = {"dftracer._core.IterableCoroutine", sizeof(Suspended), 0, kFlags,
                               g_iterable_slots};
PyType_Spec g_async_spec = {"dftracer._core.AsyncGenerator", sizeof(Suspended), 0, kFlags,
                            g_async_slots};
PyType_Spec g_step_spec = {"dftracer._core.AsyncStep", sizeof(Step), 0, kFlags, g_step_slots};

}  // namespace

PyObject* new_suspended(Resumed kind, PyObject* inner, PyObject* owner, Node& node,
                        dftracer_names& names, const std::string& captured) {
  PyTypeObject* type = nullptr;
  bool usable = Py_TYPE(inner)->tp_iternext != nullptr;
  switch (kind) {
    case Resumed::kGenerator:
      type = g_generator_type;
      break;
    case Resumed::kIterableCoroutine:
      type = g_iterable_type;
      break;
    case Resumed::kCoroutine:
      type = g_coroutine_type;
      usable = PyObject_HasAttr(inner, g_send) != 0;
      break;
    case Resumed::kAsyncGenerator:
      type = g_async_type;
      usable = Py_TYPE(inner)->tp_as_async != nullptr &&
               Py_TYPE(inner)->tp_as_async->am_anext != nullptr;
      break;
  }
  PyObject* object = usable ? type->tp_alloc(type, 0) : nullptr;
  if (object == nullptr) {
    PyErr_Clear();
    return inner;
  }
  Suspended& s = *suspended_of(object);
  new (&s.captured) std::string(captured);
  s.inner = inner;
  Py_INCREF(owner);
  s.owner = owner;
  Py_INCREF(&node);
  s.node = &node;
  s.names = &names;
  s.state = State::kFresh;
  s.yields = kind == Resumed::kGenerator || kind == Resumed::kAsyncGenerator;
  return object;
}

bool add_suspended_types(PyObject* module) {
  (void)module;
  if (g_generator_type != nullptr) return true;
  g_busy = PyUnicode_InternFromString("busy");
  g_send = PyUnicode_InternFromString("send");
  g_throw = PyUnicode_InternFromString("throw");
  g_close = PyUnicode_InternFromString("close");
  g_generator_type = make_inner_type(g_generator_spec);
  g_coroutine_type = make_inner_type(g_coroutine_spec);
  g_iterable_type = make_inner_type(g_iterable_spec);
  g_async_type = make_inner_type(g_async_spec);
  g_step_type = make_inner_type(g_step_spec);
  return g_busy != nullptr && g_send != nullptr && g_throw != nullptr && g_close != nullptr &&
         g_generator_type != nullptr && g_coroutine_type != nullptr && g_iterable_type != nullptr &&
         g_async_type != nullptr && g_step_type != nullptr;
}

}  // namespace dft::python
