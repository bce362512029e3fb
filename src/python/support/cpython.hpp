// Everything that this extension uses of CPython without a promise in its documentation, in one
// place: a new release of Python is checked against this file. All of it needs the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/support/ref.hpp"

namespace dft::python {

// The running context: each task has its own, and each thread; nullptr where a thread has set no
// context variable yet. The public API only copies a context, and a copy is another context.
inline PyObject* current_context() { return PyThreadState_Get()->context; }

// CPython 3.12 and 3.13 count calls that come from C apart, against a limit that a program cannot
// set. A recorded call is the user's call, which sys.setrecursionlimit governs: while one of these
// lives, one call from C is not counted. Py_LeaveRecursiveCall has the same effect, but may only
// follow a Py_EnterRecursiveCall, and is a call itself.
class UncountedCall {
 public:
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
  UncountedCall() : thread_(PyThreadState_Get()) { thread_->c_recursion_remaining += kLevels; }
  ~UncountedCall() { thread_->c_recursion_remaining -= kLevels; }
#else
  UncountedCall() {}
  ~UncountedCall() {}
#endif
  UncountedCall(const UncountedCall&) = delete;
  UncountedCall& operator=(const UncountedCall&) = delete;

#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
 private:
  static constexpr int kLevels = 2;  // what entering the interpreter's loop takes of the limit
  PyThreadState* thread_;
#endif
};

// An attribute, found without running code of the program: in the object's own dictionary, in a
// slot, or as a plain value of its class; empty otherwise. PyObject_GetAttr would run properties,
// __getattr__ and __getattribute__, and PyObject_GenericGetDict alone would make a dictionary for
// every object that has none yet.
inline Ref attribute_without_code(PyObject* object, PyObject* name) {
  Ref found;
  PyObject** dict = _PyObject_GetDictPtr(object);
  if (dict != nullptr && *dict != nullptr) {
    found = Ref::borrow(PyDict_GetItemWithError(*dict, name));
  } else if (dict == nullptr && Py_TYPE(object)->tp_getattro == PyObject_GenericGetAttr) {
    const Ref own(PyObject_GenericGetDict(object, nullptr));
    if (own && PyDict_Check(own.get()))
      found = Ref::borrow(PyDict_GetItemWithError(own.get(), name));
  }
  PyErr_Clear();
  if (found) return found;
  // The method cache; a walk over tp_mro with public calls costs a dictionary lookup per base.
  PyObject* of_class = _PyType_Lookup(Py_TYPE(object), name);
  if (of_class == nullptr) return {};
  const descrgetfunc get = Py_TYPE(of_class)->tp_descr_get;
  if (Py_TYPE(of_class) == &PyMemberDescr_Type) {
    found = Ref(get(of_class, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
    PyErr_Clear();
    return found;
  }
  return get == nullptr ? Ref::borrow(of_class) : Ref();
}

// Whether only the caller's reference keeps the object alive. Py_REFCNT is public, but its exact
// value is not: an immortal object, or a build without a GIL, may count more than there are.
inline bool is_only_reference(PyObject* object) { return Py_REFCNT(object) == 1; }

}  // namespace dft::python
