// Mutual exclusion for builds of CPython without a GIL; with one, everything here is empty.
// Included by dftracer._core, on the thread that runs Python code.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

// Holds the lock of one object for a scope. CPython releases it while the thread waits for another,
// so, unlike a mutex, it cannot deadlock; what it protects must be consistent at such points.
class CriticalSection {
 public:
#ifdef Py_GIL_DISABLED
  explicit CriticalSection(PyObject* object) { PyCriticalSection_Begin(&section_, object); }
  ~CriticalSection() { PyCriticalSection_End(&section_); }
#else
  explicit CriticalSection(PyObject*) {}
  ~CriticalSection() = default;
#endif
  CriticalSection(const CriticalSection&) = delete;
  CriticalSection& operator=(const CriticalSection&) = delete;

#ifdef Py_GIL_DISABLED
 private:
  PyCriticalSection section_;
#endif
};

}  // namespace dft::python
