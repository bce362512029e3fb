// Function, Callable and CallableObject: callables that record their calls.
// Called by module.cpp when the module is imported.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

[[nodiscard]] bool add_function_types(PyObject* module);

}  // namespace dft::python
