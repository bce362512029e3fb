// Recording of Python functions that are chosen by name, without annotations. Called by the module's
// initialization.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

bool add_chosen_functions(PyObject* module);

}  // namespace dft::python
