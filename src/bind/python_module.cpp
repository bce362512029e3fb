// dftracer._core: the C API for Python. Calls are plain C calls; nothing here raises for a value
// that it cannot write, because an annotation must not break the program that it describes.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <vector>

#include <dftracer/dftracer.h>

namespace {

// Keeps alive what an argument points to until the event is written.
class Arguments {
 public:
  ~Arguments() {
    for (PyObject* object : held_) Py_DECREF(object);
  }
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // UTF-8 of a str, with undecodable file names as the bytes that they were; nullptr if it has
  // none.
  const char* text(PyObject* object, Py_ssize_t* size) {
    PyObject* bytes = nullptr;
    if (PyBytes_Check(object)) {
      Py_INCREF(object);
      bytes = object;
    } else if (PyUnicode_Check(object)) {
      bytes = PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape");
      if (bytes == nullptr) {
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace");
      }
    }
    if (bytes == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    held_.push_back(bytes);
    char* data = nullptr;
    PyBytes_AsStringAndSize(bytes, &data, size);
    return data;
  }

  void add(PyObject* key, PyObject* value) {
    Py_ssize_t size = 0;
    dftracer_arg arg{};
    arg.key = text(key, &size);
    if (arg.key == nullptr) return;
    // Older callers wrap a value as (role, value).
    if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2) value = PyTuple_GET_ITEM(value, 1);
    if (PyBool_Check(value)) {
      arg.type = DFTRACER_INT;
      arg.value.i = value == Py_True ? 1 : 0;
    } else if (PyLong_Check(value)) {
      add_int(arg, value);
    } else if (PyFloat_Check(value)) {
      arg.type = DFTRACER_FLOAT;
      arg.value.f = PyFloat_AS_DOUBLE(value);
    } else {
      arg.type = DFTRACER_STRING;
      arg.value.s.text = text(value, &size);
      if (arg.value.s.text == nullptr) {  // by type: its repr may be slow, large, or have effects
        arg.value.s.text = Py_TYPE(value)->tp_name;
        size = static_cast<Py_ssize_t>(std::char_traits<char>::length(arg.value.s.text));
      }
      arg.value.s.size = static_cast<std::size_t>(size);
    }
    list_.push_back(arg);
  }

  [[nodiscard]] const dftracer_arg* data() const { return list_.data(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }

 private:
  void add_int(dftracer_arg& arg, PyObject* value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    arg.type = DFTRACER_INT;
    arg.value.i = number;
    if (overflow == 0) return;
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() == nullptr) {
      arg.type = DFTRACER_UINT;
      arg.value.u = large;
      return;
    }
    PyErr_Clear();
    arg.type = DFTRACER_STRING;
    PyObject* digits = PyObject_Str(value);
    Py_ssize_t size = 0;
    arg.value.s.text = digits != nullptr ? text(digits, &size) : nullptr;
    arg.value.s.size = static_cast<std::size_t>(size);
    Py_XDECREF(digits);
    PyErr_Clear();
  }

  std::vector<PyObject*> held_;
  std::vector<dftracer_arg> list_;
};

std::uint64_t unsigned_time(PyObject* object) {
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

PyObject* initialize(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* const kNames[] = {"log_file", "data_dirs", "process_id", nullptr};
  PyObject* log_file = Py_None;
  PyObject* data_dirs = Py_None;
  int process_id = -1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOi:initialize", const_cast<char**>(kNames),
                                   &log_file, &data_dirs, &process_id)) {
    return nullptr;
  }
  PyObject* paths[2] = {nullptr, nullptr};
  PyObject* given[2] = {log_file, data_dirs};
  for (int i = 0; i < 2; ++i) {
    if (given[i] != Py_None && PyUnicode_FSConverter(given[i], &paths[i]) == 0) {
      Py_XDECREF(paths[0]);
      return nullptr;
    }
  }
  const char* path = paths[0] != nullptr ? PyBytes_AS_STRING(paths[0]) : nullptr;
  const char* dirs = paths[1] != nullptr ? PyBytes_AS_STRING(paths[1]) : nullptr;
  int result = 0;
  Py_BEGIN_ALLOW_THREADS;
  result = dftracer_initialize(path, dirs, &process_id);
  Py_END_ALLOW_THREADS;
  Py_XDECREF(paths[0]);
  Py_XDECREF(paths[1]);
  return PyBool_FromLong(result == 0);
}

PyObject* finalize(PyObject*, PyObject*) {
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

PyObject* active(PyObject*, PyObject*) { return PyBool_FromLong(dftracer_active()); }
PyObject* time(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(dftracer_time()); }

// complete(name, category, start, duration, *dicts)
PyObject* complete(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 4) {
    PyErr_SetString(PyExc_TypeError, "complete(name, category, start, duration, *arguments)");
    return nullptr;
  }
  if (dftracer_active() == 0) Py_RETURN_NONE;
  Arguments arguments;
  Py_ssize_t size = 0;
  const char* name = arguments.text(args[0], &size);
  const char* category = arguments.text(args[1], &size);
  for (Py_ssize_t i = 4; i < count; ++i) {
    if (!PyDict_Check(args[i])) continue;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(args[i], &at, &key, &value) != 0) arguments.add(key, value);
  }
  dftracer_complete(name, category, unsigned_time(args[2]), unsigned_time(args[3]),
                    arguments.data(), arguments.size());
  Py_RETURN_NONE;
}

PyObject* metadata(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "metadata(key, value)");
    return nullptr;
  }
  Arguments arguments;
  Py_ssize_t size = 0;
  const char* key = arguments.text(args[0], &size);
  const char* value = arguments.text(args[1], &size);
  dftracer_metadata(key, value != nullptr ? value : Py_TYPE(args[1])->tp_name);
  Py_RETURN_NONE;
}

template <class Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef g_methods[] = {
    {"initialize", as_method(initialize), METH_VARARGS | METH_KEYWORDS,
     "Start recording; True while this process records."},
    {"finalize", finalize, METH_NOARGS, "Bring the file up to date; the last call closes it."},
    {"flush", flush, METH_NOARGS, "Bring the file up to date and go on."},
    {"active", active, METH_NOARGS, "True while events are recorded."},
    {"time", time, METH_NOARGS, "Time as events have it; 0 while nothing is recorded."},
    {"complete", as_method(complete), METH_FASTCALL, "Record one event with times of its own."},
    {"metadata", as_method(metadata), METH_FASTCALL, "Record a key and a value of the process."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "_core",
                        "The C API of dftracer.",
                        0,
                        g_methods,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&g_module); }
