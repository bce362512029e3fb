// What the files of dftracer._reader share: building dictionaries, running without the GIL, and
// turning C++ exceptions into Python errors. Included by the files of this folder alone; everything
// but the work that run() starts happens on the calling thread, with the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "python/support/ref.hpp"
#include "python/support/type.hpp"
#include "reader/input/scan.hpp"

namespace dft::reader::python {

using dft::python::as_method;
using dft::python::new_reference;
using dft::python::Ref;

// A Python error is set.
struct PythonError : std::exception {};

inline PyObject* checked(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return object;
}

inline PyObject* text(std::string_view value) {
  return checked(
      PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace"));
}
inline PyObject* path_text(const std::string& value) {
  return checked(
      PyUnicode_DecodeFSDefaultAndSize(value.data(), static_cast<Py_ssize_t>(value.size())));
}
inline PyObject* number(std::uint64_t value) { return checked(PyLong_FromUnsignedLongLong(value)); }
inline PyObject* integer(std::int64_t value) { return checked(PyLong_FromLongLong(value)); }
inline PyObject* boolean(bool value) { return PyBool_FromLong(value ? 1 : 0); }
inline PyObject* nothing() { Py_RETURN_NONE; }

// Takes the reference.
inline void put(PyObject* dict, const char* key, PyObject* value) {
  const Ref owned(value);
  if (PyDict_SetItemString(dict, key, value) != 0) throw PythonError();
}
inline void push(PyObject* list, PyObject* value) {
  const Ref owned(value);
  if (PyList_Append(list, value) != 0) throw PythonError();
}

inline std::string path_from(PyObject* object) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object, &bytes) == 0) throw PythonError();
  const Ref owned(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

inline std::vector<std::string> paths_from(PyObject* object) {
  std::vector<std::string> out;
  const Ref items(checked(PySequence_Fast(object, "a list of paths is needed")));
  out.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    out.push_back(path_from(PySequence_Fast_GET_ITEM(items.get(), i)));
  }
  return out;
}

// Runs the work on a thread of its own, without the GIL, and checks for signals meanwhile. Calls
// `progress`, if it is not None, with the number of bytes read.
inline void run(PyObject* progress, const std::function<void(Control&)>& work) {
  Control control;
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread([&] {
    try {
      work(control);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  bool interrupted = false;
  for (;;) {
    bool ended = false;
    Py_BEGIN_ALLOW_THREADS;
    std::unique_lock lock(mutex);
    ended = changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return done; });
    Py_END_ALLOW_THREADS;
    if (ended) break;
    if (interrupted) continue;
    if (PyErr_CheckSignals() != 0) interrupted = true;
    if (!interrupted && progress != nullptr && progress != Py_None) {
      const Ref answer(PyObject_CallFunction(
          progress, "K", static_cast<unsigned long long>(control.bytes.load())));
      interrupted = !answer;
    }
    if (interrupted) control.stop = true;
  }
  thread.join();
  if (interrupted) throw PythonError();
  if (failure) std::rethrow_exception(failure);
}

inline PyObject* damage_dict(const Damage& damage) {
  Ref out(checked(PyDict_New()));
  put(out.get(), "bytes_read", number(damage.bytes_read));
  put(out.get(), "text_bytes", number(damage.text_bytes));
  put(out.get(), "members", number(damage.members));
  put(out.get(), "lines", number(damage.lines));
  put(out.get(), "records", number(damage.records));
  put(out.get(), "metadata", number(damage.metadata));
  put(out.get(), "own", number(damage.own));
  put(out.get(), "ends", number(damage.ends));
  put(out.get(), "events", number(damage.events));
  put(out.get(), "damaged", boolean(damage.is_damaged()));
  Ref counts(checked(PyDict_New()));
  for (std::size_t i = 0; i < kTroubles; ++i) {
    if (damage.counts[i] != 0) {
      put(counts.get(), info_of(static_cast<Trouble>(i)).name, number(damage.counts[i]));
    }
  }
  put(out.get(), "troubles", counts.release());
  Ref problems(checked(PyList_New(0)));
  for (const Problem& problem : damage.problems) {
    Ref item(checked(PyDict_New()));
    const TroubleInfo& info = info_of(problem.kind);
    put(item.get(), "kind", text(info.name));
    put(item.get(), "text", text(info.text));
    put(item.get(), "file", number(problem.file));
    put(item.get(), "offset", number(problem.offset));
    put(item.get(), "line", number(problem.line));
    put(item.get(), "size", number(problem.size));
    put(item.get(), "detail", text(problem.detail));
    push(problems.get(), item.release());
  }
  put(out.get(), "problems", problems.release());
  return out.release();
}

inline PyObject* file_dict(const InFile& file) {
  Ref item(checked(PyDict_New()));
  put(item.get(), "path", path_text(file.path));
  put(item.get(), "size", number(file.size));
  put(item.get(), "compressed", boolean(file.compressed));
  put(item.get(), "document", boolean(file.layout == FileLayout::kDocument));
  put(item.get(), "ours", boolean(file.ours));
  put(item.get(), "bracket", boolean(file.bracket));
  put(item.get(), "merged", boolean(file.merged));
  put(item.get(), "start_ns", file.started ? integer(file.started_ns) : nothing());
  put(item.get(), "host", text(file.named_host.empty() ? file.host : file.named_host));
  put(item.get(), "records", boolean(file.records));
  put(item.get(), "blank", boolean(file.blank));
  put(item.get(), "run", text(file.run));
  put(item.get(), "process", text(file.process));
  put(item.get(), "nanoseconds_a_unit",
      number(file.clock.digits == 0   ? 1
             : file.clock.digits == 3 ? 1000
             : file.clock.digits == 6 ? 1000000
                                      : 1000000000));
  put(item.get(), "base_ns", integer(file.clock.base_ns));
  put(item.get(), "rank", file.rank < 0 ? nothing() : integer(file.rank));
  put(item.get(), "error", file.error == 0 ? nothing() : integer(file.error));
  return item.release();
}

inline PyObject* scan_dict(const ScanResult& scan_result) {
  Ref out(checked(PyDict_New()));
  Ref files(checked(PyList_New(0)));
  for (std::size_t i = 0; i < scan_result.files.size(); ++i) {
    Ref item(file_dict(*scan_result.files[i]));
    put(item.get(), "report", damage_dict(scan_result.damages[i]));
    push(files.get(), item.release());
  }
  put(out.get(), "files", files.release());
  put(out.get(), "total", damage_dict(scan_result.total));
  return out.release();
}

// Turns what was thrown into a Python error.
template <typename Work>
inline PyObject* guarded(Work&& work) {
  try {
    return work();
  } catch (const PythonError&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const Stopped&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::system_error& problem) {
    errno = problem.code().value();
    PyErr_SetFromErrno(PyExc_OSError);
  } catch (const std::invalid_argument& problem) {
    PyErr_SetString(PyExc_ValueError, problem.what());
  } catch (const std::exception& problem) {
    PyErr_SetString(PyExc_OSError, problem.what());
  }
  return nullptr;
}

// writing.cpp
extern PyMethodDef kMergeMethods[];

}  // namespace dft::reader::python
