// Region: one event of a node as a Python object, which may be dropped instead of recorded.
// Called by module.cpp when the module is imported.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

[[nodiscard]] bool add_region_type(PyObject* module);

}  // namespace dft::python
