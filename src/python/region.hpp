// Python objects for integrations: an event that may turn out to be none.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

bool add_region_type(PyObject* module);

}  // namespace dft::python
