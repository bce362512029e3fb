// Events that annotations made while no trace was started. A program that never starts one hears of
// it once, when it ends (dftracer/python/_missed.py); one that starts it later does not.
#include <atomic>

#include "python/node.hpp"

namespace dft::python {
namespace {

std::atomic<std::uint64_t> g_missed{0};
std::atomic<bool> g_over{false};

void watch() {
  KeepError keep;
  PyObject* module = PyImport_ImportModule("dftracer.python._missed");
  PyObject* done = module != nullptr ? PyObject_CallMethod(module, "watch", nullptr) : nullptr;
  PyErr_Clear();
  Py_XDECREF(done);
  Py_XDECREF(module);
}

}  // namespace

[[gnu::cold]] void count_missed() {
  if (g_over.load(std::memory_order_relaxed)) return;
  if (g_missed.fetch_add(1, std::memory_order_relaxed) == 0) watch();
}

void stop_counting_missed() { g_over.store(true, std::memory_order_relaxed); }

std::uint64_t missed_events() {
  return g_over.load(std::memory_order_relaxed) ? 0 : g_missed.load(std::memory_order_relaxed);
}

}  // namespace dft::python
