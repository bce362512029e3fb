// The event of a generator or a coroutine, and what all their types have in common.
#include "python/suspendable.hpp"

#include "python/generator.hpp"
#include "python/support/cpython.hpp"
#include "python/support/error.hpp"

namespace dft::python {

PyObject* g_send_name = nullptr;
PyObject* g_throw_name = nullptr;
PyObject* g_close_name = nullptr;

namespace {

PyObject* g_busy_key = nullptr;  // "busy"

void raise_stop_iteration(PyObject* value) {
  const Ref stop(PyObject_CallFunctionObjArgs(PyExc_StopIteration, value, nullptr));
  if (stop) PyErr_SetObject(PyExc_StopIteration, stop.get());
}

#if PY_VERSION_HEX < 0x030a0000
// Takes the value of a StopIteration that is set, or None at an end without an exception.
Ref take_returned_value() {
  PyObject *type = nullptr, *stop = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &stop, &traceback);
  if (type != nullptr) PyErr_NormalizeException(&type, &stop, &traceback);
  const Ref owned[] = {Ref(type), Ref(stop), Ref(traceback)};
  Ref value(stop != nullptr ? PyObject_GetAttrString(stop, "value") : nullptr);
  if (value) return value;
  PyErr_Clear();
  return Ref::borrow(Py_None);
}
#endif

}  // namespace

Suspendable::~Suspendable() {
  inner.reset();  // its last code may still run, inside the event
  if (phase == Phase::kSuspended || phase == Phase::kRunning) dftracer_region_drop(&region);
}

void Suspendable::resume() {
  if (phase == Phase::kNew) {
    dftracer_open(&region, names);
  } else if (phase == Phase::kSuspended) {
    dftracer_resume(&region, &inside, &before);
    moved = true;
  } else {
    return;
  }
  phase = Phase::kRunning;
  resumed = dftracer_ticks();
}

void Suspendable::suspend() {
  if (phase != Phase::kRunning) return;
  busy += dftracer_ticks() - resumed;
  dftracer_suspend(&region, moved ? &before : nullptr, &inside);
  phase = Phase::kSuspended;
}

void Suspendable::finish() {
  if (phase == Phase::kFinished) return;
  const bool began = phase != Phase::kNew;
  if (phase == Phase::kRunning) {
    busy += dftracer_ticks() - resumed;
    // Resumed, it is not where it began: it leaves the stack before it ends.
    if (moved) dftracer_suspend(&region, &before, &inside);
  }
  phase = Phase::kFinished;
  if (!began || region.opaque[0] == 0) return;
  std::string more = std::move(captured);
  if (has_items) {
    SavedError saved;
    append_int(more, g_count_key, count);
    append_ticks(more, g_busy_key, busy);
  }
  close_region(region, *node, more);
}

void Suspendable::suspend_or_finish(bool over) {
  if (over) {
    finish();
  } else {
    suspend();
  }
}

bool Suspendable::is_over() const {
  if (!inner) return true;
  SavedError saved;
  for (const char* name : {"gi_frame", "cr_frame", "ag_frame"}) {
    const Ref frame(PyObject_GetAttrString(inner.get(), name));
    if (frame) return frame.get() == Py_None;
    PyErr_Clear();
  }
  return true;
}

SendResult send(PyObject* inner, PyObject* value) {
  PyObject* result = nullptr;
#if PY_VERSION_HEX >= 0x030a0000
  switch (PyIter_Send(inner, value, &result)) {
    case PYGEN_NEXT:
      return {Exit::kYielded, Ref(result)};
    case PYGEN_RETURN:
      return {Exit::kReturned, Ref(result)};
    default:
      return {Exit::kRaised, Ref()};
  }
#else
  if (value == Py_None && Py_TYPE(inner)->tp_iternext != nullptr) {
    result = Py_TYPE(inner)->tp_iternext(inner);
  } else {
    result = PyObject_CallMethodOneArg(inner, g_send_name, value);
  }
  if (result != nullptr) return {Exit::kYielded, Ref(result)};
  if (PyErr_Occurred() != nullptr && !PyErr_ExceptionMatches(PyExc_StopIteration))
    return {Exit::kRaised, Ref()};
  return {Exit::kReturned, take_returned_value()};
#endif
}

Ref call_method(PyObject* object, PyObject* name, PyObject* args) {
  const Ref bound(PyObject_GetAttr(object, name));
  return bound ? Ref(PyObject_Call(bound.get(), args, nullptr)) : Ref();
}

PyObject* as_next(SendResult result) {
  if (result.exit != Exit::kReturned) return result.value.release();
  if (result.value.get() != Py_None) raise_stop_iteration(result.value.get());
  return nullptr;
}

PyObject* as_sent(SendResult result) {
  if (result.exit != Exit::kReturned) return result.value.release();
  raise_stop_iteration(result.value.get());
  return nullptr;
}

#if PY_VERSION_HEX >= 0x030a0000
PySendResult as_send_slot(SendResult result, PyObject** value) {
  *value = result.value.release();
  switch (result.exit) {
    case Exit::kYielded:
      return PYGEN_NEXT;
    case Exit::kReturned:
      return PYGEN_RETURN;
    default:
      return PYGEN_ERROR;
  }
}
#endif

PyObject* suspendable_getattr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  PyObject* inner = suspendable_of(self).inner.get();
  if (found != nullptr || inner == nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError))
    return found;
  PyErr_Clear();
  return PyObject_GetAttr(inner, name);
}

PyObject* suspendable_repr(PyObject* self) {
  PyObject* inner = suspendable_of(self).inner.get();
  return PyUnicode_FromFormat("<recorded %R>", inner != nullptr ? inner : Py_None);
}

// Dropped before its end: what the inner one does when it is closed is still inside the event.
void suspendable_finalize(PyObject* self) {
  Suspendable& s = suspendable_of(self);
  if (!s.inner || s.phase != Phase::kSuspended) return;
  SavedError saved;
  s.resume();
  if (s.has_items && is_only_reference(s.inner.get()) &&
      PyObject_HasAttr(s.inner.get(), g_close_name)) {  // an asynchronous one is closed by its loop
    const Ref result(PyObject_CallMethodNoArgs(s.inner.get(), g_close_name));
    if (!result) PyErr_WriteUnraisable(s.inner.get());
  }
  s.finish();
}

void suspendable_deallocate(PyObject* self) {
  if (PyObject_CallFinalizerFromDealloc(self) == 0) deallocate<Suspendable>(self);
}

namespace {

PyObject* suspendable_class(PyObject* self, void*) {
  PyObject* inner = suspendable_of(self).inner.get();
  return new_reference(reinterpret_cast<PyObject*>(Py_TYPE(inner != nullptr ? inner : self)));
}

}  // namespace

PyMemberDef g_suspendable_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, DFT_OFFSET(Suspendable, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef g_suspendable_getset[] = {{"__class__", suspendable_class, nullptr, nullptr, nullptr},
                                      {nullptr, nullptr, nullptr, nullptr, nullptr}};

namespace {

// Whether `inner` has what a recorded object of this kind calls.
bool is_usable(Kind kind, PyObject* inner) {
  const PyTypeObject* type = Py_TYPE(inner);
  if (kind == Kind::kCoroutine) return PyObject_HasAttr(inner, g_send_name) != 0;
  if (kind == Kind::kAsyncGenerator)
    return type->tp_as_async != nullptr && type->tp_as_async->am_anext != nullptr;
  return type->tp_iternext != nullptr;
}

}  // namespace

Ref new_suspendable(Kind kind, Ref inner, PyObject* owner, Node& node, dftracer_names& names,
                    const std::string& captured) {
  if (!is_usable(kind, inner.get())) return inner;
  Ref self = create<Suspendable>(kind == Kind::kAsyncGenerator ? async_generator_type()
                                                               : generator_type(kind));
  if (!self) {
    PyErr_Clear();
    return inner;
  }
  Suspendable& s = suspendable_of(self.get());
  s.inner = std::move(inner);
  s.owner = Ref::borrow(owner);
  s.node = RefTo<Node>::borrow(&node);
  s.names = &names;
  s.captured = captured;
  s.has_items = kind == Kind::kGenerator || kind == Kind::kAsyncGenerator;
  return self;
}

bool make_suspendable_types() {
  if (g_busy_key != nullptr) return true;
  g_send_name = intern("send").release();
  g_throw_name = intern("throw").release();
  g_close_name = intern("close").release();
  g_busy_key = intern("busy").release();
  return g_send_name != nullptr && g_throw_name != nullptr && g_close_name != nullptr &&
         g_busy_key != nullptr && make_generator_types() && make_async_generator_types();
}

}  // namespace dft::python
