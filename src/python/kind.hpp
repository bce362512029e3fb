// What a call of a function yields. dftracer/python/_wrap.py reads it from the flags of the code
// object and passes it to Function; the module exports each as KIND_NAME.
#pragma once

namespace dft::python {

enum class Kind {
  kPlain,      // its result
  kGenerator,  // the others: an object, which is recorded while it runs
  kCoroutine,
  kAsyncGenerator,
  kIterableCoroutine,  // a generator that can be awaited: @types.coroutine
};

struct KindName {
  const char* name;
  Kind kind;
};
constexpr KindName kKindNames[] = {
    {"KIND_PLAIN", Kind::kPlain},
    {"KIND_GENERATOR", Kind::kGenerator},
    {"KIND_COROUTINE", Kind::kCoroutine},
    {"KIND_ASYNC_GENERATOR", Kind::kAsyncGenerator},
    {"KIND_ITERABLE_COROUTINE", Kind::kIterableCoroutine},
};

}  // namespace dft::python
