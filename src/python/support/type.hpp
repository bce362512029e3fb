// Types of Python objects with a C++ state (object.hpp): allocation, deallocation and the two
// functions that the garbage collector calls, made from what the state says of itself.
// Included by both extensions; everything runs with the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <new>
#include <tuple>
#include <utility>

#include "python/support/object.hpp"
#include "python/support/ref.hpp"

namespace dft::python {

// A new object with the state State{arguments...}; empty with a Python error set. The only place
// that constructs C++ objects in Python's memory, as deallocate is the only one that destroys them.
template <class State, class... Arguments>
Ref create(PyTypeObject* type, Arguments&&... arguments) {
  Ref object(type->tp_alloc(type, 0));
  if (object) new (&state_of<State>(object.get())) State{std::forward<Arguments>(arguments)...};
  return object;
}

// A state that the collector must know has `visits()`: its references that may be part of a cycle,
// as std::tie gives them. Where cycles must be broken here, `clears()`, in the same form.
template <class State>
concept Collected = requires(State& state) { state.visits(); };
// One that can be referred to weakly has `weak_references`, the list that CPython keeps.
template <class State>
concept WeaklyReferenced = requires(State& state) { state.weak_references; };

template <class State>
void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if constexpr (Collected<State>) PyObject_GC_UnTrack(self);
  State& state = state_of<State>(self);
  if constexpr (WeaklyReferenced<State>) {
    if (state.weak_references != nullptr) PyObject_ClearWeakRefs(self);
  }
  state.~State();
  type->tp_free(self);
  Py_DECREF(type);  // an instance of a type that is made at run time owns a reference to it
}

template <Collected State>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const auto visit_one = [&](const auto& ref) {
    return ref ? visit(object_of(ref.get()), arg) : 0;
  };
  int result = 0;
  std::apply([&](const auto&... refs) { (void)(((result = visit_one(refs)) != 0) || ...); },
             state_of<State>(self).visits());
  return result;
}

template <Collected State>
int clear(PyObject* self) {
  std::apply([](auto&... refs) { (refs.reset(), ...); }, state_of<State>(self).clears());
  return 0;
}

template <class Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
template <class Function>
void* as_slot(Function function) {
  return reinterpret_cast<void*>(function);
}

// Where CPython finds a member of a state.
#define DFT_OFFSET(State, member) \
  static_cast<Py_ssize_t>(offsetof(dft::python::Object<State>, state) + offsetof(State, member))

// Iterators and awaitables that are their own.
inline PyObject* return_self(PyObject* self) { return new_reference(self); }

// Types are made once per process; interpreters that share a GIL share them.
inline PyTypeObject* make_type(PyType_Spec& spec) {
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}
// A type whose objects only C++ makes: Python code would get one without its state.
inline PyTypeObject* make_internal_type(PyType_Spec& spec) {
  PyTypeObject* type = make_type(spec);
  if (type != nullptr) type->tp_new = nullptr;
  return type;
}
inline bool add_type(PyObject* module, const char* name, PyTypeObject* type) {
  Ref added = Ref::borrow(reinterpret_cast<PyObject*>(type));
  if (PyModule_AddObject(module, name, added.get()) != 0) return false;
  (void)added.release();  // the module took it over
  return true;
}

}  // namespace dft::python
