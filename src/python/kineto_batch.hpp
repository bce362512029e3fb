// Batch: the events that another profiler of this process gathered, recorded from Python code.
// Called by module.cpp when the module is imported.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

[[nodiscard]] bool add_batch_type(PyObject* module);

}  // namespace dft::python
