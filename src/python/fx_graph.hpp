// Compiled, Graph and Op: the graphs of a compiled PyTorch model, and the operations in them.
// Called by module.cpp when the module is imported.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

[[nodiscard]] bool add_graph_types(PyObject* module);

}  // namespace dft::python
