// Callables that are recorded.
#pragma once
#include "python/node.hpp"

namespace dft::python {

bool add_function_types(PyObject* module);

}  // namespace dft::python
