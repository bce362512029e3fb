// dftracer._reader: traces in the formats of other tools, for `export` and `view`.
// Called with the interpreter's lock; files are read and written without it.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/export/export.hpp"
#include "reader/python/methods.hpp"
#include "reader/python/support.hpp"

namespace dft::reader::python {
namespace {

// A path, a descriptor, or None: to count what would be written.
std::unique_ptr<OutFile> out_from(PyObject* output) {
  if (output == Py_None) return std::make_unique<OutFile>();
  if (PyLong_Check(output) == 0) return std::make_unique<OutFile>(path_from(output));
  const long fd = PyLong_AsLong(output);
  if (fd == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return std::make_unique<OutFile>(static_cast<int>(fd));
}

// Nanoseconds; None for no bound.
std::optional<std::int64_t> bound_from(PyObject* value) {
  if (value == nullptr || value == Py_None) return std::nullopt;
  const long long bound = PyLong_AsLongLong(value);
  if (bound == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return bound;
}

// What is in the file is counted, not what was meant to be.
std::uint64_t count_written(std::string_view format, const std::string& place, unsigned threads) {
  if (format == "perfetto") return count_perfetto(place);
  if (format == "speedscope") return count_speedscope(place);
  return scan({place}, threads,
              [](unsigned, Block& block) { block.records([](const Event&, std::uint64_t) {}); })
      .total.records;
}

PyObject* exported_dict(const Exported& done, std::uint64_t found) {
  Ref out(scan_dict(done.scan_result));
  put(out.get(), "events", number(done.events));
  put(out.get(), "records", number(done.records));
  put(out.get(), "found", number(found));
  put(out.get(), "bytes", number(done.bytes));
  put(out.get(), "too_large", boolean(done.too_large));
  Ref pids(checked(PyList_New(0)));
  for (const std::int64_t pid : done.pids) push(pids.get(), integer(pid));
  put(out.get(), "pids", pids.release());
  return out.release();
}

PyObject* py_export(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"format", "paths", "output", "threads", "progress", nullptr};
  const char* format = nullptr;
  PyObject* paths = nullptr;
  PyObject* output = nullptr;
  unsigned threads = 0;
  PyObject* progress = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "sOO|$IO", const_cast<char**>(kNames), &format,
                                  &paths, &output, &threads, &progress) == 0) {
    return nullptr;
  }
  const std::string_view name(format);
  if (name != "chrome" && name != "perfetto" && name != "speedscope" && name != "folded") {
    PyErr_Format(PyExc_ValueError, "there is no format '%s'", format);
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const std::vector<std::string> list = paths_from(paths);
    const std::unique_ptr<OutFile> out = out_from(output);
    const bool is_file = PyLong_Check(output) == 0 && output != Py_None;
    const std::string place = is_file ? path_from(output) : std::string();
    Exported done;
    std::uint64_t found = 0;
    run(progress, [&](Control& control) {
      done = name == "perfetto"     ? export_perfetto(list, *out, threads, &control)
             : name == "speedscope" ? export_speedscope(list, *out, threads, &control)
             : name == "folded"     ? export_folded(list, *out, threads, &control)
                                    : export_chrome(list, *out, threads, &control);
      if (name == "folded") {
        found = !is_file || count_folded(place) == done.added ? done.records : 0;
        return;
      }
      // A stream is gone.
      found = is_file ? count_written(name, place, threads) - done.added : done.records;
    });
    return exported_dict(done, found);
  });
}

PyObject* py_view(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"paths", "output", "begin",   "end",
                                 "pids",  "limit",  "threads", nullptr};
  PyObject* paths = nullptr;
  PyObject* output = nullptr;
  PyObject* begin = nullptr;
  PyObject* end = nullptr;
  PyObject* pids = nullptr;
  unsigned long long limit = 0;
  unsigned threads = 0;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$OOOKI", const_cast<char**>(kNames), &paths,
                                  &output, &begin, &end, &pids, &limit, &threads) == 0) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const std::vector<std::string> list = paths_from(paths);
    View view;
    view.on = true;
    view.begin = bound_from(begin);
    view.end = bound_from(end);
    view.limit = limit;
    if (pids != nullptr && pids != Py_None) {
      const Ref items(checked(PySequence_Fast(pids, "a list of processes is needed")));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        const auto pid = bound_from(PySequence_Fast_GET_ITEM(items.get(), i));
        if (pid) view.pids.insert(*pid);
      }
    }
    const std::unique_ptr<OutFile> out = out_from(output);
    Exported done;
    run(nullptr,
        [&](Control& control) { done = export_chrome(list, *out, threads, &control, view); });
    return exported_dict(done, done.records);
  });
}

}  // namespace

PyMethodDef kExportMethods[] = {
    {"export", as_method(py_export), METH_VARARGS | METH_KEYWORDS,
     "Writes a trace as chrome, perfetto, speedscope or folded."},
    {"view", as_method(py_view), METH_VARARGS | METH_KEYWORDS,
     "Writes Chrome JSON of a part of a trace, for a viewer; to None, counts it."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace dft::reader::python
