/* Calls a Python function while callgrind counts, and lets it write the counts under a name. Loaded
 * with ctypes, so that neither the interpreter's start nor a tracer's end is counted, and needs no
 * symbols of either. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <valgrind/callgrind.h>

__attribute__((visibility("default"))) void collect(PyObject* run, Py_ssize_t calls,
                                                    const char* name) {
  PyObject* count = PyLong_FromSsize_t(calls);
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;
  PyObject* result = PyObject_CallFunctionObjArgs(run, count, NULL);
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
  Py_XDECREF(result);
  Py_DECREF(count);
}
