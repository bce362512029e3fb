// Counts the events of annotations while no trace is started. A program that never starts one gets
// one warning when it ends (dftracer/python/_missed.py); one that starts it later gets none.
// Called on any thread that runs Python code, with the GIL.
#include <atomic>

#include "python/node.hpp"
#include "python/support/error.hpp"

namespace dft::python {
namespace {

std::atomic<std::uint64_t> g_missed{0};
std::atomic<bool> g_stopped{false};

// Registers the warning.
void watch() {
  SavedError saved;
  const Ref module(PyImport_ImportModule("dftracer.python._missed"));
  const Ref result(module ? PyObject_CallMethod(module.get(), "watch", nullptr) : nullptr);
  PyErr_Clear();
}

}  // namespace

[[gnu::cold]] void count_missed() {
  if (g_stopped.load(std::memory_order_relaxed)) return;
  if (g_missed.fetch_add(1, std::memory_order_relaxed) == 0) watch();
}

void stop_counting_missed() { g_stopped.store(true, std::memory_order_relaxed); }

std::uint64_t missed_events() {
  return g_stopped.load(std::memory_order_relaxed) ? 0 : g_missed.load(std::memory_order_relaxed);
}

}  // namespace dft::python
