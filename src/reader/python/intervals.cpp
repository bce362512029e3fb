// dftracer._reader: sums over intervals that SQL is too slow for, and the tables of integers that
// carry them. Called by reports, with the interpreter's lock.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reader/arrow/int_table.hpp"
#include "reader/intervals/intervals.hpp"
#include "reader/intervals/sweep.hpp"
#include "reader/python/methods.hpp"
#include "reader/python/support.hpp"

namespace dft::reader::python {
namespace {

constexpr const char* kIntTableName = "dftracer.longs";

void free_stream(PyObject* capsule) {
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
  if (stream == nullptr) return;
  if (stream->release != nullptr) {
    Py_BEGIN_ALLOW_THREADS;
    stream->release(stream);
    Py_END_ALLOW_THREADS;
  }
  delete stream;
}

// Goes through the rows of anything that gives an Arrow stream of integers.
void take_ints(PyObject* source, std::size_t columns, const TakeInts& take) {
  const Ref capsule(checked(PyObject_CallMethod(source, "__arrow_c_stream__", nullptr)));
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.get(), "arrow_array_stream"));
  if (stream == nullptr) throw PythonError();
  std::exception_ptr failure;
  Py_BEGIN_ALLOW_THREADS;
  try {
    read_ints(stream, columns, take);
  } catch (...) {
    failure = std::current_exception();
  }
  Py_END_ALLOW_THREADS;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

PyObject* stream_capsule(std::unique_ptr<ArrowArrayStream> stream) {
  PyObject* capsule = PyCapsule_New(stream.get(), "arrow_array_stream", free_stream);
  if (capsule == nullptr) {
    stream->release(stream.get());
    throw PythonError();
  }
  stream.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  return capsule;
}

// The capsule owns the table.
PyObject* int_table_capsule(IntTable&& longs) {
  auto table = std::make_unique<std::shared_ptr<const IntTable>>(
      std::make_shared<const IntTable>(std::move(longs)));
  PyObject* capsule = checked(PyCapsule_New(table.get(), kIntTableName, [](PyObject* own) {
    delete static_cast<std::shared_ptr<const IntTable>*>(PyCapsule_GetPointer(own, kIntTableName));
  }));
  table.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  return capsule;
}

namespace {

PyObject* py_sweep(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"spans", "windows", "shift", "gather", nullptr};
  PyObject* spans = nullptr;
  PyObject* windows = nullptr;
  int shift = 62;
  long long gather = 0;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$iL", const_cast<char**>(kNames), &spans,
                                  &windows, &shift, &gather) == 0) {
    return nullptr;
  }
  if (shift < 0 || shift > 62) {
    PyErr_SetString(PyExc_ValueError, "shift is 0 to 62");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Sweep sweep;
    take_ints(spans, 4, [&](const auto& columns, std::int64_t rows) {
      for (std::int64_t i = 0; i < rows; ++i) {
        sweep.span(columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
      }
    });
    take_ints(windows, 4, [&](const auto& columns, std::int64_t rows) {
      for (std::int64_t i = 0; i < rows; ++i) {
        sweep.window(columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
      }
    });
    IntTable table;
    std::map<int, std::string> gathered;
    sweep.gather(gather);
    Py_BEGIN_ALLOW_THREADS;
    table = sweep.take(shift);
    gathered = sweep.take_gathered();
    Py_END_ALLOW_THREADS;
    Ref packed(checked(PyDict_New()));
    for (const auto& [lane, intervals] : gathered) {
      const Ref key(integer(lane));
      const Ref value(checked(
          PyBytes_FromStringAndSize(intervals.data(), static_cast<Py_ssize_t>(intervals.size()))));
      if (PyDict_SetItem(packed.get(), key.get(), value.get()) != 0) throw PythonError();
    }
    const Ref longs(int_table_capsule(std::move(table)));
    return checked(PyTuple_Pack(2, longs.get(), packed.get()));
  });
}

PyObject* py_union_length(PyObject* /*module*/, PyObject* sets) {
  return guarded([&]() -> PyObject* {
    const Ref items(checked(PySequence_Fast(sets, "a list of packed intervals is needed")));
    std::vector<std::string_view> packed;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      char* data = nullptr;
      Py_ssize_t size = 0;
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (PyBytes_AsStringAndSize(item, &data, &size) != 0) throw PythonError();
      packed.emplace_back(data, static_cast<std::size_t>(size));
    }
    return number(union_length(packed));
  });
}

PyObject* py_longs_stream(PyObject* /*module*/, PyObject* holder) {
  auto* table =
      static_cast<std::shared_ptr<const IntTable>*>(PyCapsule_GetPointer(holder, kIntTableName));
  if (table == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    auto stream = std::make_unique<ArrowArrayStream>();
    open_int_table(*table, stream.get());
    return stream_capsule(std::move(stream));
  });
}

}  // namespace

PyMethodDef kIntervalMethods[] = {
    {"sweep", as_method(py_sweep), METH_VARARGS | METH_KEYWORDS,
     "How long which lanes were open at once, a handle for longs_stream; and when those of "
     "`gather` "
     "were open in any process, packed, by lane."},
    {"union_length", py_union_length, METH_O, "How long any of these packed intervals were open."},
    {"longs_stream", py_longs_stream, METH_O, "An Arrow stream of a table of integers."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace dft::reader::python
