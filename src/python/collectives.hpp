// Collectives of torch.distributed: calls that all ranks of a process group make in the same order.
// Called by module.cpp when the module is imported; Python makes and calls the objects.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

// Group, Collectives and Collective.
[[nodiscard]] bool add_collective_types(PyObject* module);

}  // namespace dft::python
