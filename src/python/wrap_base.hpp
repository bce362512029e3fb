// What every callable that records its calls begins with, and what such types share.
// Included by function.cpp and fx_graph.cpp; Python calls wrappers on any of its threads.
#pragma once
#include "python/support/type.hpp"

namespace dft::python {

// The first member of the state of a wrapper.
struct WrapBase {
  vectorcallfunc call = nullptr;
  Ref target;  // what is called
};

// A type with these flags lists DFT_VECTORCALL_MEMBER among its members, and PyVectorcall_Call.
constexpr unsigned kWrapperFlags =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
#define DFT_WRAP_OFFSET(Wrapper, member) \
  (DFT_OFFSET(Wrapper, wrap) + static_cast<Py_ssize_t>(offsetof(WrapBase, member)))
#define DFT_VECTORCALL_MEMBER(Wrapper) \
  {"__vectorcalloffset__", T_PYSSIZET, DFT_WRAP_OFFSET(Wrapper, call), READONLY, nullptr}

template <class Wrapper>
PyObject* wrapper_repr(PyObject* self) {
  return PyUnicode_FromFormat("<recorded %R>", state_of<Wrapper>(self).wrap.target.get());
}

// The call of a wrapper that the garbage collector has cleared; a finalizer may still make it.
inline PyObject* call_cleared(PyObject*, PyObject* const*, size_t, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "a recorded callable was called after it was cleared");
  return nullptr;
}

}  // namespace dft::python
