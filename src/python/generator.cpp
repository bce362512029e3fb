// Recorded generators and coroutines: the iterator and the coroutine protocol, each step forwarded
// to the inner one with the event around it. Python calls them on the thread that resumes them.
#include "python/generator.hpp"

#include "python/suspendable.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_generator_type = nullptr;
PyTypeObject* g_coroutine_type = nullptr;
PyTypeObject* g_iterable_coroutine_type = nullptr;

void after_step(Suspendable& s, Exit exit) {
  if (exit == Exit::kYielded) ++s.count;
  s.suspend_or_finish(exit == Exit::kReturned || (exit == Exit::kRaised && s.is_over()));
}

SendResult step(Suspendable& s, PyObject* value) {
  if (!s.inner) {
    PyErr_SetString(PyExc_RuntimeError, "it was cleared by the garbage collector");
    return {Exit::kRaised, Ref()};
  }
  if (s.phase == Phase::kRunning) return send(s.inner.get(), value);  // by itself: it raises
  s.resume();
  SendResult result = send(s.inner.get(), value);
  after_step(s, result.exit);
  return result;
}

PyObject* generator_next(PyObject* self) { return as_next(step(suspendable_of(self), Py_None)); }
PyObject* generator_send(PyObject* self, PyObject* value) {
  return as_sent(step(suspendable_of(self), value));
}
#if PY_VERSION_HEX >= 0x030a0000
PySendResult generator_am_send(PyObject* self, PyObject* value, PyObject** result) {
  return as_send_slot(step(suspendable_of(self), value), result);
}
#endif

PyObject* generator_throw(PyObject* self, PyObject* args) {
  Suspendable& s = suspendable_of(self);
  if (!s.inner) Py_RETURN_NONE;
  const bool again = s.phase == Phase::kRunning;
  if (!again) s.resume();
  Ref result = call_method(s.inner.get(), g_throw_name, args);
  if (!again) after_step(s, result ? Exit::kYielded : Exit::kRaised);
  return result.release();
}

PyObject* generator_close(PyObject* self, PyObject*) {
  Suspendable& s = suspendable_of(self);
  if (!s.inner) Py_RETURN_NONE;
  const bool again = s.phase == Phase::kRunning;
  if (s.phase == Phase::kSuspended) s.resume();
  PyObject* result = PyObject_CallMethodNoArgs(s.inner.get(), g_close_name);
  if (!again) s.finish();
  return result;
}

PyMethodDef g_methods[] = {{"send", generator_send, METH_O, nullptr},
                           {"throw", generator_throw, METH_VARARGS, nullptr},
                           {"close", generator_close, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyType_Slot g_generator_slots[] = {DFT_SUSPENDABLE_SLOTS,
                                   {Py_tp_methods, g_methods},
                                   {Py_tp_iter, as_slot(return_self)},
                                   {Py_tp_iternext, as_slot(generator_next)},
                                   DFT_SEND_SLOT(generator_am_send){0, nullptr}};
PyType_Slot g_coroutine_slots[] = {DFT_SUSPENDABLE_SLOTS,
                                   {Py_tp_methods, g_methods},
                                   {Py_am_await, as_slot(return_self)},
                                   {Py_tp_iternext, as_slot(generator_next)},
                                   DFT_SEND_SLOT(generator_am_send){0, nullptr}};
PyType_Slot g_iterable_coroutine_slots[] = {DFT_SUSPENDABLE_SLOTS,
                                            {Py_tp_methods, g_methods},
                                            {Py_am_await, as_slot(return_self)},
                                            {Py_tp_iter, as_slot(return_self)},
                                            {Py_tp_iternext, as_slot(generator_next)},
                                            DFT_SEND_SLOT(generator_am_send){0, nullptr}};

PyType_Spec g_generator_spec = {"dftracer._core.Generator", sizeof(Object<Suspendable>), 0,
                                kSuspendableFlags, g_generator_slots};
PyType_Spec g_coroutine_spec = {"dftracer._core.Coroutine", sizeof(Object<Suspendable>), 0,
                                kSuspendableFlags, g_coroutine_slots};
PyType_Spec g_iterable_coroutine_spec = {"dftracer._core.IterableCoroutine",
                                         sizeof(Object<Suspendable>), 0, kSuspendableFlags,
                                         g_iterable_coroutine_slots};

}  // namespace

PyTypeObject* generator_type(Kind kind) {
  if (kind == Kind::kCoroutine) return g_coroutine_type;
  return kind == Kind::kIterableCoroutine ? g_iterable_coroutine_type : g_generator_type;
}

bool make_generator_types() {
  g_generator_type = make_internal_type(g_generator_spec);
  g_coroutine_type = make_internal_type(g_coroutine_spec);
  g_iterable_coroutine_type = make_internal_type(g_iterable_coroutine_spec);
  return g_generator_type != nullptr && g_coroutine_type != nullptr &&
         g_iterable_coroutine_type != nullptr;
}

}  // namespace dft::python
