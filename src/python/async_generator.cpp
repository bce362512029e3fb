// Recorded asynchronous generators. Each __anext__, asend, athrow or aclose makes an AsyncStep, which
// the event loop awaits: while a step runs, the generator's event is on the stack of the thread.
#include "python/suspendable.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_async_generator_type = nullptr;
PyTypeObject* g_async_step_type = nullptr;

struct AsyncStep {
  Ref inner;  // the awaitable of the inner generator
  RefTo<Suspendable> generator;
  bool is_close;  // aclose: nothing follows

  auto visits() { return std::tie(inner, generator); }
};

AsyncStep& step_of(PyObject* object) { return state_of<AsyncStep>(object); }

// The awaitable itself, which is then not recorded, without memory.
PyObject* new_step(PyObject* self, Ref awaitable, bool is_close = false) {
  if (!awaitable) return nullptr;
  Ref step = create<AsyncStep>(g_async_step_type);
  if (!step) return awaitable.release();
  step_of(step.get()).inner = std::move(awaitable);
  step_of(step.get()).generator = RefTo<Suspendable>::borrow(&suspendable_of(self));
  step_of(step.get()).is_close = is_close;
  return step.release();
}

PyObject* async_next(PyObject* self) {
  PyObject* inner = suspendable_of(self).inner.get();
  return new_step(self, Ref(Py_TYPE(inner)->tp_as_async->am_anext(inner)));
}
PyObject* async_asend(PyObject* self, PyObject* value) {
  PyObject* inner = suspendable_of(self).inner.get();
  return new_step(self, Ref(PyObject_CallMethod(inner, "asend", "O", value)));
}
PyObject* async_athrow(PyObject* self, PyObject* args) {
  const Ref bound(PyObject_GetAttrString(suspendable_of(self).inner.get(), "athrow"));
  if (!bound) return nullptr;
  return new_step(self, Ref(PyObject_Call(bound.get(), args, nullptr)));
}
PyObject* async_aclose(PyObject* self, PyObject*) {
  PyObject* inner = suspendable_of(self).inner.get();
  return new_step(self, Ref(PyObject_CallMethod(inner, "aclose", nullptr)), true);
}

// The awaitable yields to the loop (suspended, no item), returns an item, or raises.
void after_step(AsyncStep& step, Exit exit) {
  Suspendable& s = *step.generator;
  if (exit == Exit::kReturned && !step.is_close) ++s.count;
  s.suspend_or_finish(exit == Exit::kReturned ? step.is_close
                                              : exit == Exit::kRaised && s.is_over());
}

SendResult run_step(AsyncStep& step, PyObject* value) {
  Suspendable& s = *step.generator;
  if (s.phase == Phase::kRunning) return send(step.inner.get(), value);
  if (!step.is_close || s.phase == Phase::kSuspended) s.resume();
  SendResult result = send(step.inner.get(), value);
  after_step(step, result.exit);
  return result;
}

PyObject* step_next(PyObject* self) { return as_next(run_step(step_of(self), Py_None)); }
PyObject* step_send(PyObject* self, PyObject* value) {
  return as_sent(run_step(step_of(self), value));
}
#if PY_VERSION_HEX >= 0x030a0000
PySendResult step_am_send(PyObject* self, PyObject* value, PyObject** result) {
  return as_send_slot(run_step(step_of(self), value), result);
}
#endif
PyObject* step_throw(PyObject* self, PyObject* args) {
  AsyncStep& step = step_of(self);
  const bool again = step.generator->phase == Phase::kRunning;
  if (!again) step.generator->resume();
  Ref result = call_method(step.inner.get(), g_throw_name, args);
  if (again) return result.release();
  const bool returned = !result && PyErr_ExceptionMatches(PyExc_StopIteration);
  after_step(step, result ? Exit::kYielded : returned ? Exit::kReturned : Exit::kRaised);
  return result.release();
}
PyObject* step_close(PyObject* self, PyObject*) {
  return PyObject_CallMethodNoArgs(step_of(self).inner.get(), g_close_name);
}

PyMethodDef g_async_methods[] = {{"asend", async_asend, METH_O, nullptr},
                                 {"athrow", async_athrow, METH_VARARGS, nullptr},
                                 {"aclose", async_aclose, METH_NOARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};
PyMethodDef g_step_methods[] = {{"send", step_send, METH_O, nullptr},
                                {"throw", step_throw, METH_VARARGS, nullptr},
                                {"close", step_close, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

PyType_Slot g_async_slots[] = {DFT_SUSPENDABLE_SLOTS,
                               {Py_tp_methods, g_async_methods},
                               {Py_am_aiter, as_slot(return_self)},
                               {Py_am_anext, as_slot(async_next)},
                               {0, nullptr}};
PyType_Slot g_step_slots[] = {{Py_tp_dealloc, as_slot(deallocate<AsyncStep>)},
                              {Py_tp_traverse, as_slot(traverse<AsyncStep>)},
                              {Py_tp_methods, g_step_methods},
                              {Py_am_await, as_slot(return_self)},
                              {Py_tp_iter, as_slot(return_self)},
                              {Py_tp_iternext, as_slot(step_next)},
                              DFT_SEND_SLOT(step_am_send){0, nullptr}};

PyType_Spec g_async_spec = {"dftracer._core.AsyncGenerator", sizeof(Object<Suspendable>), 0,
                            kSuspendableFlags, g_async_slots};
PyType_Spec g_step_spec = {"dftracer._core.AsyncStep", sizeof(Object<AsyncStep>), 0,
                           kSuspendableFlags, g_step_slots};

}  // namespace

PyTypeObject* async_generator_type() { return g_async_generator_type; }

bool make_async_generator_types() {
  g_async_generator_type = make_internal_type(g_async_spec);
  g_async_step_type = make_internal_type(g_step_spec);
  return g_async_generator_type != nullptr && g_async_step_type != nullptr;
}

}  // namespace dft::python
