// Python's error indicator, saved while other code runs that may set or clear it.
// Included by both extensions; needs the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace dft::python {

// Puts an exception that is being raised aside, and back when the scope ends.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~SavedError() { PyErr_Restore(type_, value_, traceback_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

}  // namespace dft::python
