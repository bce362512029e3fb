// Generators, coroutines and asynchronous generators that are recorded: one event each, from the
// first time it runs until it ends, is closed or is dropped. While it is suspended it is not around
// what else the thread does.
#pragma once
#include "python/node.hpp"

namespace dft::python {

enum class Resumed {
  kGenerator = 1,
  kCoroutine = 2,
  kAsyncGenerator = 3,
  kIterableCoroutine = 4,  // a generator that can be awaited: @types.coroutine
};

// Takes over `inner`; `owner` keeps `names` alive. On failure, what is not recorded: `inner`.
PyObject* new_suspended(Resumed kind, PyObject* inner, PyObject* owner, Node& node,
                        dftracer_names& names, const std::string& captured);

bool add_suspended_types(PyObject* module);

}  // namespace dft::python
