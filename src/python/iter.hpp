// Iter: loops that are recorded, for each item one event for the wait and one for the body.
// Called by module.cpp when the module is imported.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

[[nodiscard]] bool add_iter_type(PyObject* module);

}  // namespace dft::python
