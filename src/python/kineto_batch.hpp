// Batch: events that another profiler of this process has gathered, in Python's hands.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

bool add_batch_type(PyObject* module);

}  // namespace dft::python
