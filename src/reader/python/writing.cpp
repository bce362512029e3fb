// dftracer._reader, the part that writes traces.
#include "reader/merge/merge.hpp"
#include "reader/python/support.hpp"
#include "reader/write/write_lines.hpp"

namespace dft::reader::python {
namespace {

PyObject* tally_dict(const MergeTally& tally) {
  Ref out(checked(PyDict_New()));
  put(out.get(), "events", number(tally.events));
  put(out.get(), "own", number(tally.own));
  put(out.get(), "metadata", number(tally.metadata));
  put(out.get(), "repeated", number(tally.repeated));
  put(out.get(), "replaced", number(tally.replaced));
  put(out.get(), "made", number(tally.made));
  return out.release();
}

PyObject* clock_dict(const HostClock& clock) {
  Ref out(checked(PyDict_New()));
  put(out.get(), "host", text(clock.host));
  put(out.get(), "against", text(clock.reference));
  put(out.get(), "offset_ns", integer(clock.offset_ns));
  put(out.get(), "least_ns", integer(clock.least_ns));
  put(out.get(), "most_ns", integer(clock.most_ns));
  put(out.get(), "uncertainty_ns", integer(clock.uncertainty_ns()));
  put(out.get(), "rounds", number(clock.rounds));
  put(out.get(), "proven", boolean(clock.proven));
  put(out.get(), "applied", boolean(clock.applied));
  return out.release();
}

PyObject* result_dict(const MergeResult& result) {
  Ref out(scan_dict(result.read));
  put(out.get(), "in", tally_dict(result.in));
  put(out.get(), "out", tally_dict(result.out));
  put(out.get(), "hosts", number(result.hosts));
  put(out.get(), "processes", number(result.processes));
  put(out.get(), "renumbered", number(result.renumbered));
  put(out.get(), "mismatch", text(result.mismatch));
  Ref clocks(checked(PyList_New(0)));
  for (const HostClock& clock : result.clocks) push(clocks.get(), clock_dict(clock));
  put(out.get(), "clocks", clocks.release());
  Ref doubled(checked(PyList_New(0)));
  for (const std::string& name : result.doubled) push(doubled.get(), text(name));
  put(out.get(), "doubled", doubled.release());
  Ref written(checked(PyList_New(0)));
  for (const MergeResult::WrittenFile& file : result.written) {
    Ref item(checked(PyDict_New()));
    put(item.get(), "path", path_text(file.path));
    put(item.get(), "bytes", number(file.bytes));
    put(item.get(), "records", number(file.records));
    put(item.get(), "events", number(file.events));
    push(written.get(), item.release());
  }
  put(out.get(), "written", written.release());
  return out.release();
}

bool align_from(const char* word, Align& out) {
  const std::string_view given(word);
  out = given == "never" ? Align::kNever : given == "always" ? Align::kAlways : Align::kProven;
  if (given == "never" || given == "always" || given == "proven") return true;
  PyErr_Format(PyExc_ValueError, "align is never, proven or always, not '%s'", word);
  return false;
}

PyObject* py_merge(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"paths", "out", "threads", "level", "align", "progress", nullptr};
  PyObject* paths = nullptr;
  PyObject* out = nullptr;
  MergeOptions options;
  const char* align = "proven";
  PyObject* progress = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$IIsO", const_cast<char**>(kNames), &paths,
                                  &out, &options.threads, &options.level, &align, &progress) == 0 ||
      !align_from(align, options.align)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    options.paths = paths_from(paths);
    const std::string target = path_from(out);
    MergeResult result;
    run(progress, [&](Control& control) { result = merge(options, target, &control); });
    return result_dict(result);
  });
}

PyObject* py_split(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"paths", "stem",  "end",     "by",    "number",   "start",
                                 "stop",  "align", "threads", "level", "progress", nullptr};
  PyObject* paths = nullptr;
  PyObject* stem = nullptr;
  const char* end = nullptr;
  const char* by = nullptr;
  unsigned long long number = 0;
  PyObject* start = Py_None;
  PyObject* stop = Py_None;
  const char* align = "proven";
  MergeOptions options;
  PyObject* progress = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OOssK|$OOsIIO", const_cast<char**>(kNames), &paths,
                                  &stem, &end, &by, &number, &start, &stop, &align,
                                  &options.threads, &options.level, &progress) == 0 ||
      !align_from(align, options.align)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    options.paths = paths_from(paths);
    SplitOptions how;
    const std::string_view word(by);
    how.by = word == "size"      ? SplitOptions::By::kBytes
             : word == "process" ? SplitOptions::By::kProcess
             : word == "time"    ? SplitOptions::By::kTime
                                 : SplitOptions::By::kParts;
    how.number = std::max<std::uint64_t>(number, 1);
    how.stem = path_from(stem);
    how.end = end;
    how.ranged = start != Py_None || stop != Py_None;
    how.from = start == Py_None ? INT64_MIN : PyLong_AsLongLong(start);
    how.to = stop == Py_None ? INT64_MAX : PyLong_AsLongLong(stop);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    MergeResult result;
    run(progress, [&](Control& control) { result = split(options, how, &control); });
    return result_dict(result);
  });
}

PyObject* py_clocks(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"paths", "threads", nullptr};
  PyObject* paths = nullptr;
  unsigned threads = 0;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "O|$I", const_cast<char**>(kNames), &paths,
                                  &threads) == 0) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const std::vector<std::string> list = paths_from(paths);
    Clocks found;
    if (threads == 0) threads = default_threads();
    run(nullptr, [&](Control& control) { found = compare_clocks(list, threads, &control); });
    Ref out(checked(PyDict_New()));
    Ref clocks(checked(PyList_New(0)));
    for (const HostClock& clock : found.clocks) push(clocks.get(), clock_dict(clock));
    put(out.get(), "clocks", clocks.release());
    Ref shifts(checked(PyList_New(0)));
    for (const Clocks::Shift& shift : found.shifts) {
      Ref item(checked(PyDict_New()));
      put(item.get(), "path", path_text(list[shift.file]));
      put(item.get(), "host", text(shift.host));
      put(item.get(), "shift_us", integer(shift.shift_us));
      push(shifts.get(), item.release());
    }
    put(out.get(), "shifts", shifts.release());
    return out.release();
  });
}

PyObject* py_copy(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"path",  "out",    "repair",   "threads",
                                 "level", "member", "progress", nullptr};
  PyObject* path = nullptr;
  PyObject* out = nullptr;
  CopyOptions options;
  int repair = 0;
  unsigned member = 0;
  PyObject* progress = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$pIIIO", const_cast<char**>(kNames), &path,
                                  &out, &repair, &options.threads, &options.level, &member,
                                  &progress) == 0) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const std::string from = path_from(path);
    const std::string to = path_from(out);
    options.repair = repair != 0;
    if (member != 0) options.member_text = member;
    CopyResult result;
    run(progress, [&](Control& control) { result = copy_trace(from, to, options, &control); });
    Ref dict(scan_dict(result.read));
    put(dict.get(), "records", number(result.records));
    put(dict.get(), "bytes", number(result.bytes));
    put(dict.get(), "mismatch", text(result.mismatch));
    return dict.release();
  });
}

}  // namespace

PyMethodDef kMergeMethods[] = {
    {"merge", as_method(py_merge), METH_VARARGS | METH_KEYWORDS,
     "Merges traces into one file; says what went in and what came out."},
    {"split", as_method(py_split), METH_VARARGS | METH_KEYWORDS,
     "Cuts traces into pieces that open alone."},
    {"clocks", as_method(py_clocks), METH_VARARGS | METH_KEYWORDS,
     "How far the clocks of hosts differ, and what a merge would take from their times."},
    {"copy", as_method(py_copy), METH_VARARGS | METH_KEYWORDS,
     "Writes the records of a trace to a file that is whole, and reads it again."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace dft::reader::python
