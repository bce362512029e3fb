// dftracer._reader: the table of events as an Arrow stream, its schema and its columns. Called
// with the interpreter's lock; the stream reads files when its consumer pulls, on any thread.
#include <memory>
#include <string>
#include <vector>

#include "reader/arrow/stream.hpp"
#include "reader/python/methods.hpp"
#include "reader/python/support.hpp"

namespace dft::reader::python {
namespace {

constexpr const char* kResultName = "dftracer.stream_result";

bool columns_from(PyObject* columns, std::vector<Column>& out) {
  const Ref items(PySequence_Fast(columns, "a list of columns is needed"));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    Py_ssize_t size = 0;
    const char* name = PyUnicode_AsUTF8AndSize(PySequence_Fast_GET_ITEM(items.get(), i), &size);
    if (name == nullptr) return false;
    const int column = find_column({name, static_cast<std::size_t>(size)});
    if (column < 0) {
      PyErr_Format(PyExc_ValueError, "there is no column '%s'", name);
      return false;
    }
    out.push_back(static_cast<Column>(column));
  }
  return true;
}

bool options_from(PyObject* columns, int nanoseconds, int all_rows, TableOptions& options) {
  options.nanoseconds = nanoseconds != 0;
  options.rows = all_rows != 0 ? RowFilter::kAll : RowFilter::kEvents;
  if (columns == nullptr || columns == Py_None) return true;
  if (!columns_from(columns, options.columns)) return false;
  if (options.columns.empty()) {
    PyErr_SetString(PyExc_ValueError, "at least one column is needed");
    return false;
  }
  return true;
}

void free_schema(PyObject* capsule) {
  auto* schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(capsule, "arrow_schema"));
  if (schema == nullptr) return;
  if (schema->release != nullptr) schema->release(schema);
  delete schema;
}

void free_result(PyObject* capsule) {
  delete static_cast<std::shared_ptr<StreamResult>*>(PyCapsule_GetPointer(capsule, kResultName));
}

PyObject* py_stream(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"paths",   "columns", "threads", "nanoseconds", "all_rows",
                                 "summary", "explain", "coded",   nullptr};
  PyObject* paths = nullptr;
  PyObject* columns = nullptr;
  unsigned threads = 0;
  int nanoseconds = 0;
  int all_rows = 0;
  int summary = 0;
  PyObject* explain = nullptr;
  PyObject* coded = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OIpppOO", const_cast<char**>(kNames), &paths,
                                  &columns, &threads, &nanoseconds, &all_rows, &summary, &explain,
                                  &coded) == 0) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    TableOptions options;
    if (!options_from(columns, nanoseconds, all_rows, options)) throw PythonError();
    auto result = std::make_shared<StreamResult>();
    auto stream = std::make_unique<ArrowArrayStream>();
    if (coded != nullptr && !columns_from(coded, options.coded)) throw PythonError();
    for (const Column column : options.coded) {
      if (column_info(column).type != ColumnType::kDictionary) {
        PyErr_SetString(PyExc_ValueError, "only columns of texts that repeat can be coded");
        throw PythonError();
      }
    }
    StreamOptions how{threads, summary != 0, {}};
    if (explain != nullptr) how.explain = paths_from(explain);
    open_stream(paths_from(paths), std::move(options), std::move(how), result, stream.get());
    const Ref capsule(stream_capsule(std::move(stream)));
    auto handle = std::make_unique<std::shared_ptr<StreamResult>>(std::move(result));
    const Ref holder(checked(PyCapsule_New(handle.get(), kResultName, free_result)));
    handle.release();  // NOLINT(bugprone-unused-return-value)
    return checked(PyTuple_Pack(2, capsule.get(), holder.get()));
  });
}

PyObject* py_stream_result(PyObject* /*module*/, PyObject* holder) {
  auto* handle =
      static_cast<std::shared_ptr<StreamResult>*>(PyCapsule_GetPointer(holder, kResultName));
  if (handle == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::lock_guard lock((*handle)->mutex);
    if (!(*handle)->finished) return nothing();
    Ref out(to_python((*handle)->scan_result, (*handle)->summary));
    put(out.get(), "rows", number((*handle)->rows));
    put(out.get(), "paths_unknown", number((*handle)->unresolved));
    return out.release();
  });
}

PyObject* py_schema(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"columns", "coded", nullptr};
  PyObject* columns = nullptr;
  PyObject* coded = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "|$OO", const_cast<char**>(kNames), &columns,
                                  &coded) == 0) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    TableOptions options;
    if (!options_from(columns, 0, 0, options)) throw PythonError();
    if (coded != nullptr && !columns_from(coded, options.coded)) throw PythonError();
    auto schema = std::make_unique<ArrowSchema>();
    export_schema(options, schema.get());
    PyObject* capsule = PyCapsule_New(schema.get(), "arrow_schema", free_schema);
    if (capsule == nullptr) {
      schema->release(schema.get());
      throw PythonError();
    }
    schema.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
    return capsule;
  });
}

PyObject* py_stream_words(PyObject* /*module*/, PyObject* args) {
  PyObject* holder = nullptr;
  const char* name = nullptr;
  if (PyArg_ParseTuple(args, "Os", &holder, &name) == 0) return nullptr;
  auto* handle =
      static_cast<std::shared_ptr<StreamResult>*>(PyCapsule_GetPointer(holder, kResultName));
  if (handle == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    IntTable table;
    table.names = {"code"};
    table.columns.resize(1);
    table.text_name = "word";
    const std::lock_guard lock((*handle)->mutex);
    const int column = find_column(name);
    const auto found = (*handle)->words.find(static_cast<Column>(column));
    if (column >= 0 && found != (*handle)->words.end()) {
      for (const std::string& word : found->second) {
        table.columns[0].push_back(static_cast<std::int64_t>(table.columns[0].size()));
        table.add_text(word);
      }
    }
    return int_table_capsule(std::move(table));
  });
}

PyObject* py_columns(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    Ref out(checked(PyList_New(0)));
    for (std::size_t i = 0; i < kColumns; ++i) {
      push(out.get(), text(column_info(static_cast<Column>(i)).name));
    }
    return out.release();
  });
}

}  // namespace

PyMethodDef kTableMethods[] = {
    {"stream", as_method(py_stream), METH_VARARGS | METH_KEYWORDS,
     "An Arrow stream of the events, and a handle for stream_result."},
    {"stream_result", py_stream_result, METH_O,
     "What a stream read; None until it has been read to its end."},
    {"stream_words", py_stream_words, METH_VARARGS,
     "The texts of a coded column of a stream that was read to its end; for longs_stream."},
    {"schema", as_method(py_schema), METH_VARARGS | METH_KEYWORDS,
     "The Arrow schema of the events."},
    {"columns", py_columns, METH_NOARGS, "The names of all columns, in their order."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace dft::reader::python
