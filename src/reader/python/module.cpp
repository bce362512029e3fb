// dftracer._reader: the reader for Python. Lists of paths in, dictionaries and Arrow capsules
// out. No function of the module holds the interpreter's lock while it reads files, and Ctrl-C
// ends each. Here: the module itself, and what is known without reading a trace. methods.hpp
// names the rest.
#include "reader/input/scan.hpp"
#include "reader/python/methods.hpp"
#include "reader/python/support.hpp"
#include "reader/stats/call_bytes.hpp"

namespace dft::reader::python {
namespace {

PyObject* py_probe(PyObject* /*module*/, PyObject* paths) {
  return guarded([&]() -> PyObject* {
    Ref out(checked(PyList_New(0)));
    for (const std::string& path : paths_from(paths)) {
      InFile file;
      file.path = path;
      Py_BEGIN_ALLOW_THREADS;
      (void)open_file(file);  // its error is in the dictionary
      Py_END_ALLOW_THREADS;
      push(out.get(), file_dict(file));
    }
    return out.release();
  });
}

// (name, role, whether its bytes can be known, whether its first file is the one that is written),
// of every call that the reader knows.
PyObject* py_calls(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    Ref out(checked(PyList_New(0)));
    for (const Call& call : dft::format::kCalls) {
      const Ref name(text(call.name));
      const Ref role(text(role_name(call.role)));
      const Ref known(boolean(call.measure != Measure::kUnknown));
      const Ref written(boolean(writes(call.role) && !call.second_is_written));
      push(out.get(), checked(PyTuple_Pack(4, name.get(), role.get(), known.get(), written.get())));
    }
    return out.release();
  });
}

PyMethodDef kMethods[] = {
    {"probe", py_probe, METH_O, "What the heads of files say: their kind, clock and run."},
    {"calls", py_calls, METH_NOARGS,
     "What the calls of POSIX and STDIO do: name, role, whether their bytes can be known, and "
     "whether their first file is written."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    "dftracer._reader",
    "Reads traces.",
    -1,
    kMethods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace
}  // namespace dft::reader::python

PyMODINIT_FUNC PyInit__reader() {
  using namespace dft::reader::python;  // NOLINT(google-build-using-namespace)
  Ref module(PyModule_Create(&kModule));
  for (PyMethodDef* methods :
       {kSummaryMethods, kTableMethods, kExportMethods, kIntervalMethods, kMergeMethods}) {
    if (module && PyModule_AddFunctions(module.get(), methods) != 0) return nullptr;
  }
  return module.release();
}
