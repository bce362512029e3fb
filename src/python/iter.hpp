// Loops that are recorded: for each item one event for the wait and one for the body.
#pragma once
#include "python/node.hpp"

namespace dft::python {

bool add_iter_type(PyObject* module);

}  // namespace dft::python
