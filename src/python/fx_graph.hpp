// Graphs of a compiled PyTorch model, and the operations in them.
// Everything here runs with the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {
bool add_op_types(PyObject* module);
}  // namespace dft::python
