// What the recorded generators, coroutines and asynchronous generators share: their state, how their
// event follows it, and the functions that all their types have. Included by generator.cpp and
// async_generator.cpp; a suspendable may run on another thread each time it is resumed.
#pragma once
#include <string>
#include <tuple>

#include "python/kind.hpp"
#include "python/node.hpp"
#include "python/support/type.hpp"

namespace dft::python {

enum class Phase : char { kNew, kSuspended, kRunning, kFinished };

// How a generator or a coroutine left its frame.
enum class Exit { kYielded, kReturned, kRaised };

struct SendResult {
  Exit exit;
  Ref value;  // what it yielded or returned
};

struct Suspendable {
  Ref inner;
  Ref owner;
  RefTo<Node> node;
  dftracer_names* names = nullptr;
  std::string captured;
  dftracer_region region{};
  dftracer_before before{};  // where the thread was when it was resumed
  dftracer_inside inside{};  // what was open inside it when it was suspended
  bool moved = false;        // it was resumed elsewhere than it began: `before` is valid
  std::uint64_t resumed = 0;
  std::uint64_t busy = 0;
  long long count = 0;
  Phase phase = Phase::kNew;
  bool has_items = false;  // a coroutine has none
  PyObject* weak_references = nullptr;

  Suspendable() = default;
  Suspendable(const Suspendable&) = delete;
  Suspendable& operator=(const Suspendable&) = delete;
  // Without an event: tp_finalize has recorded it where there was one to record.
  ~Suspendable();

  auto visits() { return std::tie(inner, owner, node); }
  auto clears() { return std::tie(inner); }

  // Begins the event, or puts it back on the stack of this thread.
  void resume();
  // Takes it off the stack.
  void suspend();
  // Records it.
  void finish();
  // After the inner one ran: finishes if it is over, else suspends.
  void suspend_or_finish(bool over);
  // Whether the inner one has ended. Not every exception means that: one that is resumed while it
  // runs, or sent a value before it began, raises and lives on.
  [[nodiscard]] bool is_over() const;
};

inline Suspendable& suspendable_of(PyObject* object) { return state_of<Suspendable>(object); }

// Runs an iterator or a coroutine up to its next item.
SendResult send(PyObject* inner, PyObject* value);
// Calls a method, by its interned name, with a tuple of arguments.
Ref call_method(PyObject* object, PyObject* name, PyObject* args);

// The result as tp_iternext returns it: no item and no exception means the end.
PyObject* as_next(SendResult result);
// The result as the method send() returns it.
PyObject* as_sent(SendResult result);
#if PY_VERSION_HEX >= 0x030a0000
PySendResult as_send_slot(SendResult result, PyObject** value);
#define DFT_SEND_SLOT(function) {Py_am_send, as_slot(function)},
#else
#define DFT_SEND_SLOT(function)
#endif

// Slots of all types whose state is a Suspendable.
void suspendable_deallocate(PyObject* self);
void suspendable_finalize(PyObject* self);
PyObject* suspendable_getattr(PyObject* self, PyObject* name);
PyObject* suspendable_repr(PyObject* self);
extern PyMemberDef g_suspendable_members[];
extern PyGetSetDef g_suspendable_getset[];
// clang-format off
#define DFT_SUSPENDABLE_SLOTS                                                       \
  {Py_tp_dealloc, as_slot(suspendable_deallocate)},                                 \
  {Py_tp_traverse, as_slot(traverse<Suspendable>)},                                 \
  {Py_tp_finalize, as_slot(suspendable_finalize)},                                  \
  {Py_tp_clear, as_slot(clear<Suspendable>)},                                       \
  {Py_tp_getattro, as_slot(suspendable_getattr)},                                   \
  {Py_tp_repr, as_slot(suspendable_repr)},                                          \
  {Py_tp_members, g_suspendable_members}, {Py_tp_getset, g_suspendable_getset}
// clang-format on
constexpr unsigned kSuspendableFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;

// Interned names of methods.
extern PyObject* g_send_name;
extern PyObject* g_throw_name;
extern PyObject* g_close_name;

// generator.cpp: the type of a generator, a coroutine or an iterable coroutine.
[[nodiscard]] bool make_generator_types();
PyTypeObject* generator_type(Kind kind);
// async_generator.cpp:
[[nodiscard]] bool make_async_generator_types();
PyTypeObject* async_generator_type();

}  // namespace dft::python
