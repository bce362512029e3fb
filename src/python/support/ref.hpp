// Owning references to Python objects, for all code that is not on the path of an event.
// Included by both extensions, dftracer._core and dftracer._reader; every use needs the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

#include "python/support/object.hpp"

namespace dft::python {

// Owns one reference to a PyObject, or to the Python object around a C++ state (object.hpp).
// As a member of such a state it is one pointer, null at first, so CPython can reach it by its
// offset, as it does with a __dict__.
template <class T>
class RefTo {
 public:
  constexpr RefTo() noexcept = default;
  // Takes over a new reference, such as most functions of the C API return.
  explicit constexpr RefTo(T* owned) noexcept : pointer_(owned) {}
  // Adds a reference of its own to a borrowed one.
  [[nodiscard]] static RefTo borrow(T* borrowed) noexcept {
    if (borrowed != nullptr) Py_INCREF(object_of(borrowed));
    return RefTo(borrowed);
  }

  RefTo(const RefTo& other) noexcept : RefTo(borrow(other.pointer_)) {}
  RefTo(RefTo&& other) noexcept : pointer_(other.release()) {}
  RefTo& operator=(RefTo other) noexcept {
    swap(other);
    return *this;
  }
  ~RefTo() {
    if (pointer_ != nullptr) Py_DECREF(object_of(pointer_));
  }

  [[nodiscard]] T* get() const noexcept { return pointer_; }
  T* operator->() const noexcept { return pointer_; }
  T& operator*() const noexcept { return *pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }

  // Gives the reference to the caller, who returns it to Python or releases it.
  [[nodiscard]] T* release() noexcept { return std::exchange(pointer_, nullptr); }
  // Empties it first and releases then: the object's finalizer may come back here.
  void reset() noexcept { const RefTo before(release()); }
  void swap(RefTo& other) noexcept { std::swap(pointer_, other.pointer_); }
  // Where the pointer is, for an atomic access without a GIL.
  [[nodiscard]] T** address() noexcept { return &pointer_; }
  // Another reference to the same object, for a caller that wants to own one.
  [[nodiscard]] T* new_reference() const noexcept { return borrow(pointer_).release(); }

 private:
  T* pointer_ = nullptr;
};

using Ref = RefTo<PyObject>;

// A new reference to a borrowed object, as a function that Python calls must return it.
[[nodiscard]] inline PyObject* new_reference(PyObject* borrowed) noexcept {
  return Ref::borrow(borrowed).release();
}

// What a weak reference refers to; empty once that is gone.
[[nodiscard]] inline Ref referent(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* object = nullptr;
  if (PyWeakref_GetRef(weak, &object) < 0) PyErr_Clear();
  return Ref(object);
#else
  PyObject* object = PyWeakref_GetObject(weak);
  return object == Py_None ? Ref() : Ref::borrow(object);
#endif
}

// An interned str, which lives as long as the process; nullptr with a Python error set.
[[nodiscard]] inline Ref intern(const char* text) { return Ref(PyUnicode_InternFromString(text)); }
// The one object that stands for all equal strings. `text` is an exact str.
inline void intern_in_place(Ref& text) {
  PyObject* object = text.release();
  PyUnicode_InternInPlace(&object);
  text = Ref(object);
}

}  // namespace dft::python
