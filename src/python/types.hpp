// Small things that every type of the Python extension needs.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

namespace dft::python {

template <class Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
template <class Function>
void* as_slot(Function function) {
  return reinterpret_cast<void*>(function);
}

// Types are made once a process; interpreters that share a GIL share them.
inline PyTypeObject* make_type(PyType_Spec& spec) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}
// One that only we make: Python code would get an object without its parts.
inline PyTypeObject* make_inner_type(PyType_Spec& spec) {
  PyTypeObject* type = make_type(spec);
  if (type != nullptr) type->tp_new = nullptr;
  return type;
}
inline bool add_type(PyObject* module, const char* name, PyTypeObject* type) {
  Py_INCREF(type);
  if (PyModule_AddObject(module, name, reinterpret_cast<PyObject*>(type)) == 0) return true;
  Py_DECREF(type);
  return false;
}

}  // namespace dft::python
