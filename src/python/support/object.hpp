// Python objects with a C++ state: a head that belongs to CPython, then an ordinary C++ object,
// which a constructor makes and a destructor ends. Included by ref.hpp and type.hpp.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>
#include <cstdint>

namespace dft::python {

template <class State>
struct Object {
  PyObject_HEAD;
  State state;
};

// The state of an object that is known to be of this type: nothing is checked.
template <class State>
State& state_of(PyObject* object) {
  return reinterpret_cast<Object<State>*>(object)->state;
}

inline PyObject* object_of(PyObject* object) { return object; }
// The object that a state is inside of.
template <class State>
PyObject* object_of(State* state) {
  // By its number: the analyzer takes a pointer before the state for one out of bounds.
  const auto address = reinterpret_cast<std::uintptr_t>(state);
  return reinterpret_cast<PyObject*>(address - offsetof(Object<State>, state));
}

}  // namespace dft::python
