// Region: one event of a node as a Python object, which may be dropped instead of recorded.
// Called by module.cpp when the module is imported, and by lineage.cpp for each batch.
#pragma once
#include "python/node.hpp"

namespace dft::python {

[[nodiscard]] bool add_region_type(PyObject* module);

[[nodiscard]] bool is_region(PyObject* object);
// Ends and records it with `more` after the node's arguments.
void end_region(PyObject* region, std::string_view more, const FlowEnd& end);

}  // namespace dft::python
