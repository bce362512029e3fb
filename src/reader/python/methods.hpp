// What the files of the extension dftracer._reader offer each other: one table of methods per
// subject, which module.cpp adds to the module, and the few helpers that two of them need.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>

#include "reader/arrow/int_table.hpp"
#include "reader/input/scan.hpp"
#include "reader/stats/stats.hpp"

namespace dft::reader::python {

extern PyMethodDef kSummaryMethods[];
extern PyMethodDef kTableMethods[];
extern PyMethodDef kExportMethods[];
extern PyMethodDef kIntervalMethods[];

// All throw PythonError, and return a new reference.
PyObject* to_python(const ScanResult& scan_result, const Stats& stats);
// The capsule owns the stream, or the table.
PyObject* stream_capsule(std::unique_ptr<ArrowArrayStream> stream);
PyObject* int_table_capsule(IntTable&& table);

}  // namespace dft::reader::python
