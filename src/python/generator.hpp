// Generators, coroutines and asynchronous generators that are recorded: one event each, from the
// first time it runs until it ends, is closed or is dropped. While it is suspended, other events of
// the thread are not inside it. Called by function.cpp, on the thread that makes one.
#pragma once
#include "python/kind.hpp"
#include "python/node.hpp"

namespace dft::python {

// A recorded object in place of `inner`; `owner` keeps `names` alive. `inner` itself, which is then
// not recorded, where it is not what `kind` says, or without memory.
Ref new_suspendable(Kind kind, Ref inner, PyObject* owner, Node& node, dftracer_names& names,
                    const std::string& captured);

[[nodiscard]] bool make_suspendable_types();

}  // namespace dft::python
