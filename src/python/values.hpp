// Python values as arguments of an event, in the form of the record. Never raises, and never runs a
// user's code: an annotation must not break, or slow down, the program that it describes.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <string_view>

namespace dft::python {

// The bytes of a str or of bytes; undecodable file names as the bytes that they were. `held` keeps
// them alive, and is the caller's to release. Empty for anything else.
std::string_view text_of(PyObject* object, PyObject*& held);

// A new reference to a plain Python value for one of the few foreign types that are known to be
// cheap and safe to ask (scalars of numpy and torch, paths, tags); nullptr for all others.
PyObject* plain_value(PyObject* object);
// A value in words: text as it is, anything else as JSON.
std::string words_for(PyObject* value);

// An exception that is on its way, put aside while something else is looked up.
class KeepError {
 public:
  KeepError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeepError() { PyErr_Restore(type_, value_, traceback_); }
  KeepError(const KeepError&) = delete;
  KeepError& operator=(const KeepError&) = delete;

 private:
  PyObject* type_;
  PyObject* value_;
  PyObject* traceback_;
};

// Appends `key` and `value`. A key that is no str is shown as a number or by its type.
void append_argument(std::string& out, PyObject* key, PyObject* value);
void append_int(std::string& out, PyObject* key, long long value);
// A length of time in clock ticks.
void append_ticks(std::string& out, PyObject* key, unsigned long long ticks);
// Overwrites an argument that append_argument, or append_int, made of an int; false if it did not,
// or if this one is no int that fits.
bool replace_int(std::string& argument, PyObject* value);
void replace_int(std::string& argument, long long value);
// Every entry of a dict; a value may be wrapped as (role, value), as older callers do.
void append_dict(std::string& out, PyObject* dict);

}  // namespace dft::python
