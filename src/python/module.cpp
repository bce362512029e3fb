// dftracer._core: the C API for Python, and the types that annotations are made of. Nothing here
// raises for a value that it cannot write, because an annotation must not break the program that it
// describes. Called by the package dftracer.python, on any thread, with the GIL.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "api/core_abi.hpp"
#include "python/chosen_functions.hpp"
#include "python/collectives.hpp"
#include "python/function.hpp"
#include "python/fx_graph.hpp"
#include "python/generator.hpp"
#include "python/iter.hpp"
#include "python/kineto_batch.hpp"
#include "python/lineage.hpp"
#include "python/node.hpp"
#include "python/region.hpp"
#include "python/support/type.hpp"
#include "python/values.hpp"

namespace {

using namespace dft::python;

std::uint64_t unsigned_time(PyObject* object) {
  if (const Ref plain = plain_value(object)) return unsigned_time(plain.get());
  if (PyFloat_Check(object)) {
    const double value = PyFloat_AS_DOUBLE(object);
    return value > 0 && value < 1.8e19 ? static_cast<std::uint64_t>(value) : 0;
  }
  const unsigned long long value = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) {  // negative, or not a number: an event without a length
    PyErr_Clear();
    return 0;
  }
  return value;
}

// A path as bytes that `held` keeps alive; nullptr for None. False with a Python error set.
bool convert_path(PyObject* object, Ref& held, const char*& path) {
  if (object == Py_None) return true;
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object, &bytes) == 0) return false;
  held = Ref(bytes);
  path = PyBytes_AS_STRING(bytes);
  return true;
}

PyObject* initialize(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* const kNames[] = {"log_file", "data_dirs", "process_id", nullptr};
  PyObject* log_file = Py_None;
  PyObject* data_dirs = Py_None;
  int process_id = -1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOi:initialize", const_cast<char**>(kNames),
                                   &log_file, &data_dirs, &process_id)) {
    return nullptr;
  }
  Ref held_file;
  Ref held_dirs;
  const char* path = nullptr;
  const char* dirs = nullptr;
  if (!convert_path(log_file, held_file, path) || !convert_path(data_dirs, held_dirs, dirs))
    return nullptr;
  stop_counting_missed();
  int result = 0;
  Py_BEGIN_ALLOW_THREADS;
  result = dftracer_initialize(path, dirs, &process_id);
  if (result == 0) dftracer_serve_python();
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(result == 0);
}

PyObject* finalize(PyObject*, PyObject*) {
  if (dftracer_active() != 0) stop_counting_missed();
  Py_BEGIN_ALLOW_THREADS;
  dftracer_finalize();
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

PyObject* flush(PyObject*, PyObject*) {
  Py_BEGIN_ALLOW_THREADS;
  dftracer_flush();
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

PyObject* has_children(PyObject*, PyObject*) {
  dftracer_has_children();
  Py_RETURN_NONE;
}

// The run that this process belongs to, as 16 hex digits; "" while nothing is recorded.
PyObject* run(PyObject*, PyObject*) {
  const std::uint64_t id = dftracer_run_id();
  char text[17] = "";
  if (id != 0) std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(id));
  return PyUnicode_FromString(text);
}

PyObject* missed(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(missed_events()); }
PyObject* asked(PyObject*, PyObject*) {
  stop_counting_missed();
  Py_RETURN_NONE;
}
PyObject* active(PyObject*, PyObject*) { return PyBool_FromLong(dftracer_active()); }
PyObject* time(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(dftracer_time()); }

// Levels that enter() opened on this thread. An event that is logged inside one takes its place.
struct OpenLevel {
  dftracer_region region;
  bool used = false;
};
// By pointers: an open region does not move.
thread_local std::vector<std::unique_ptr<OpenLevel>> t_levels;

PyObject* enter(PyObject*, PyObject*) {
  static dftracer_names names{0, "event", 5, "APP", 3};
  auto level = std::make_unique<OpenLevel>();
  dftracer_open(&level->region, &names);
  t_levels.push_back(std::move(level));
  Py_RETURN_NONE;
}

PyObject* leave(PyObject*, PyObject*) {
  if (!t_levels.empty()) {
    dftracer_region_drop(&t_levels.back()->region);
    t_levels.pop_back();
  }
  Py_RETURN_NONE;
}

// complete(name, category, start, duration, *dicts)
PyObject* complete(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 4) {
    PyErr_SetString(PyExc_TypeError, "complete(name, category, start, duration, *arguments)");
    return nullptr;
  }
  if (dftracer_active() == 0) {
    count_missed();
    Py_RETURN_NONE;
  }
  const std::string name = display_text(args[0]);
  const std::string category = display_text(args[1]);
  std::string arguments;
  for (Py_ssize_t i = 4; i < count; ++i) {
    if (PyDict_Check(args[i])) append_dict(arguments, args[i]);
  }
  dftracer_names names{0, name.data(), name.size(), category.data(), category.size()};
  const std::uint64_t start = unsigned_time(args[2]);
  const std::uint64_t duration = unsigned_time(args[3]);
  OpenLevel* level = t_levels.empty() ? nullptr : t_levels.back().get();
  if (level != nullptr && !level->used && dftracer_is_innermost(&level->region) != 0) {
    level->used = true;
    dftracer_complete_open(&level->region, &names, start, duration, arguments.data(),
                           arguments.size());
  } else {
    dftracer_complete_with(&names, start, duration, arguments.data(), arguments.size());
  }
  Py_RETURN_NONE;
}

// instant(name, category, *dicts)
PyObject* instant(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 2) {
    PyErr_SetString(PyExc_TypeError, "instant(name, category, *arguments)");
    return nullptr;
  }
  if (dftracer_active() == 0) Py_RETURN_NONE;
  const std::string name = display_text(args[0]);
  const std::string category = display_text(args[1]);
  std::string arguments;
  for (Py_ssize_t i = 2; i < count; ++i) {
    if (PyDict_Check(args[i])) append_dict(arguments, args[i]);
  }
  dftracer_names names{0, name.data(), name.size(), category.data(), category.size()};
  dftracer_instant_with(&names, arguments.data(), arguments.size());
  Py_RETURN_NONE;
}

// instant_at(name, category, time_ns, *dicts): at a time of the Unix epoch
PyObject* instant_at(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 3) {
    PyErr_SetString(PyExc_TypeError, "instant_at(name, category, time_ns, *arguments)");
    return nullptr;
  }
  if (dftracer_active() == 0) Py_RETURN_NONE;
  const std::string name = display_text(args[0]);
  const std::string category = display_text(args[1]);
  std::string arguments;
  for (Py_ssize_t i = 3; i < count; ++i) {
    if (PyDict_Check(args[i])) append_dict(arguments, args[i]);
  }
  dftracer_names names{0, name.data(), name.size(), category.data(), category.size()};
  dftracer_instant_at(&names, unsigned_time(args[2]), arguments.data(), arguments.size());
  Py_RETURN_NONE;
}

PyObject* metadata(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "metadata(key, value)");
    return nullptr;
  }
  if (dftracer_active() == 0) Py_RETURN_NONE;
  const std::string key = display_text(args[0]);
  const std::string value = display_text(args[1]);
  dftracer_metadata_with(key.data(), key.size(), value.data(), value.size());
  Py_RETURN_NONE;
}

PyMethodDef g_methods[] = {
    {"initialize", as_method(initialize), METH_VARARGS | METH_KEYWORDS,
     "Start recording; True while this process records."},
    {"finalize", finalize, METH_NOARGS, "Bring the file up to date; the last call closes it."},
    {"flush", flush, METH_NOARGS, "Bring the file up to date and go on."},
    {"has_children", has_children, METH_NOARGS,
     "Announce processes that another one starts on behalf of this one."},
    {"run", run, METH_NOARGS, "The id of the run that this process belongs to."},
    {"missed", missed, METH_NOARGS, "Events that were not recorded: no trace was started."},
    {"asked", asked, METH_NOARGS, "The program requested a trace, whether that succeeded or not."},
    {"active", active, METH_NOARGS, "True while events are recorded."},
    {"time", time, METH_NOARGS, "Time as events have it; 0 while nothing is recorded."},
    {"complete", as_method(complete), METH_FASTCALL, "Record one event with times of its own."},
    {"instant", as_method(instant), METH_FASTCALL, "Record that something happened now."},
    {"instant_at", as_method(instant_at), METH_FASTCALL, "Record that something happened then."},
    {"enter", enter, METH_NOARGS, "Open a level: what follows is inside it."},
    {"leave", leave, METH_NOARGS, "Close the level that enter() opened last."},
    {"metadata", as_method(metadata), METH_FASTCALL, "Record a key and a value of the process."},
    {nullptr, nullptr, 0, nullptr}};

int execute(PyObject* module) {
  // The types keep state per process, which interpreters would mix up.
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "only the main interpreter of a process is recorded");
    return -1;
  }
  const bool done = add_node_type(module) && add_function_types(module) &&
                    make_suspendable_types() && add_iter_type(module) && add_graph_types(module) &&
                    add_region_type(module) && add_batch_type(module) && add_lineage_type(module) &&
                    add_loader_item_types(module) && add_worker_queue_types(module) &&
                    add_chosen_functions(module) && add_collective_types(module);
  return done ? 0 : -1;
}

PyModuleDef_Slot g_slots[] = {{Py_mod_exec, as_slot(execute)},
#ifdef Py_mod_gil
                              {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                              {0, nullptr}};

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "_core",
                        "The C API of dftracer, and the types that annotations are made of.",
                        0,
                        g_methods,
                        g_slots,
                        nullptr,
                        nullptr,
                        nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&g_module); }
