// dftracer._reader: the reader for Python. Lists of paths in, dictionaries and Arrow capsules out.
// No function here holds the interpreter's lock while files are read, and Ctrl-C ends each.
#include <memory>
#include <string>
#include <vector>

#include "reader/arrow/stream.hpp"
#include "reader/export/export.hpp"
#include "reader/input/scan.hpp"
#include "reader/intervals/intervals.hpp"
#include "reader/intervals/sweep.hpp"
#include "reader/python/support.hpp"
#include "reader/stats/stats.hpp"

namespace {

using namespace dft::reader;          // NOLINT(google-build-using-namespace)
using namespace dft::reader::python;  // NOLINT(google-build-using-namespace)

void put_bytes(PyObject* dict, const Bytes& bytes) {
  put(dict, "read_bytes", number(bytes.read));
  put(dict, "write_bytes", number(bytes.written));
  put(dict, "read_unknown", number(bytes.read_unknown));
  put(dict, "write_unknown", number(bytes.write_unknown));
}

PyObject* row_dict(const Partial::NameRow& name) {
  const Row& row = name.row;
  Ref out(checked(PyDict_New()));
  put(out.get(), "file", number(name.file));
  put(out.get(), "cat", text(name.category));
  put(out.get(), "name", text(name.name));
  put(out.get(), "count", number(row.count));
  put(out.get(), "total_ns", number(row.total));
  put(out.get(), "min_ns", number(row.count == 0 ? 0 : row.least));
  put(out.get(), "max_ns", number(row.most));
  constexpr struct {
    const char* key;
    double share;
  } kShares[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}};
  for (const auto& share : kShares) {
    // The histogram's steps are wider than the extremes, which are exact.
    put(out.get(), share.key,
        number(std::clamp(row.durations.percentile(share.share), std::min(row.least, row.most),
                          row.most)));
  }
  put_bytes(out.get(), row.bytes);
  return out.release();
}

// A tuple, as a trace may hold a million: summary.py names its places.
PyObject* process_tuple(const ProcessRow& process, PyObject* host) {
  const ProcessTexts& said = process.said();
  Ref out(checked(PyTuple_New(30)));
  Py_ssize_t at = 0;
  const auto add = [&](PyObject* value) { PyTuple_SET_ITEM(out.get(), at++, checked(value)); };
  add(number(process.file));
  add(integer(process.pid));
  Py_INCREF(host);
  add(host);
  add(text(said.rank));
  add(text(said.name));
  add(text(said.command));
  add(text(said.program));
  add(text(said.cwd));
  add(process.ppid < 0 ? nothing() : integer(process.ppid));
  add(text(said.run));
  add(text(said.key));
  add(number(process.threads.size()));
  add(number(process.events));
  add(number(process.records));
  add(number(process.total));
  const Bytes& bytes = process.bytes;
  // A sum of which nothing is known is none.
  add(bytes.read == 0 && bytes.read_unknown != 0 ? nothing() : number(bytes.read));
  add(bytes.written == 0 && bytes.write_unknown != 0 ? nothing() : number(bytes.written));
  add(number(bytes.read_unknown));
  add(number(bytes.write_unknown));
  add(process.timed ? integer(process.first) : nothing());
  add(process.timed ? integer(process.last) : nothing());
  add(process.began_timed ? integer(process.began) : nothing());
  add(process.ended_timed ? integer(process.ended) : nothing());
  add(process.cpu < 0 ? nothing() : integer(process.cpu));
  add(number(process.starts));
  add(number(process.ends));
  add(boolean(process.recovered));
  add(number(process.lost));
  add(process.promised < 0 ? nothing() : integer(process.promised));
  add(text(said.version));
  return out.release();
}

PyObject* path_dict(const std::string& path, const PathRow& row) {
  Ref out(checked(PyDict_New()));
  put(out.get(), "path", text(path));
  put(out.get(), "count", number(row.count));
  put(out.get(), "total_ns", number(row.total));
  put(out.get(), "reads", number(row.reads));
  put(out.get(), "writes", number(row.writes));
  put_bytes(out.get(), row.bytes);
  put(out.get(), "mapped_bytes", number(row.mapped));
  return out.release();
}

PyObject* facts_dict(const FileFacts& facts) {
  Ref out(checked(PyDict_New()));
  put(out.get(), "first_ns", facts.timed ? integer(facts.first) : nothing());
  put(out.get(), "last_ns", facts.timed ? integer(facts.last) : nothing());
  Ref metadata(checked(PyDict_New()));
  for (const auto& [name, count] : facts.metadata) {
    const Ref key(text(name));
    const Ref value(number(count));
    if (PyDict_SetItem(metadata.get(), key.get(), value.get()) != 0) throw PythonError();
  }
  put(out.get(), "metadata", metadata.release());
  Ref sample(checked(PyList_New(0)));
  for (const auto& [place, line] : facts.sample) push(sample.get(), text(line));
  put(out.get(), "sample", sample.release());
  return out.release();
}

PyObject* to_python(const Outcome& outcome, const Partial& partial) {
  Ref out(outcome_dict(outcome));
  Ref rows(checked(PyList_New(0)));
  for (const Partial::NameRow& row : partial.names) push(rows.get(), row_dict(row));
  put(out.get(), "names", rows.release());
  Ref processes(checked(PyList_New(0)));
  Ref host(text({}));
  const ProcessRow* before = nullptr;
  for (const ProcessRow& process : partial.processes) {
    if (before == nullptr || before->host != process.host) host = Ref(text(process.host));
    before = &process;
    push(processes.get(), process_tuple(process, host.get()));
  }
  put(out.get(), "processes", processes.release());
  Ref paths(checked(PyList_New(0)));
  for (const auto& [path, row] : partial.by_path) push(paths.get(), path_dict(path, row));
  put(out.get(), "paths", paths.release());
  put(out.get(), "paths_unknown", number(partial.paths_unknown));
  Ref pipes(checked(PyDict_New()));
  put_bytes(pipes.get(), partial.pipes);
  put(out.get(), "pipes", pipes.release());
  Ref hosts(checked(PyDict_New()));
  for (const auto& [hash, name] : partial.hosts) {
    const Ref key(text(hash));
    const Ref value(text(name));
    if (PyDict_SetItem(hosts.get(), key.get(), value.get()) != 0) throw PythonError();
  }
  put(out.get(), "hosts", hosts.release());
  Ref facts(checked(PyList_New(0)));
  for (std::size_t i = 0; i < outcome.files.size(); ++i) {
    const auto found = partial.files.find(static_cast<std::uint32_t>(i));
    push(facts.get(), facts_dict(found == partial.files.end() ? FileFacts() : found->second));
  }
  put(out.get(), "facts", facts.release());
  return out.release();
}

PyObject* py_summarise(PyObject* /*module*/, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"paths",   "threads",  "by_file", "by_path",
                                 "samples", "progress", nullptr};
  PyObject* paths = nullptr;
  unsigned threads = 0;
  int by_file = 0;
  int by_path = 1;
  unsigned samples = 0;
  PyObject* progress = nullptr;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "O|$IppIO", const_cast<char**>(kNames), &paths,
                                  &threads, &by_file, &by_path, &samples, &progress) == 0) {
    return nullptr;
  }
  return guarded([&] {
    const std::vector<std::string> list = paths_from(paths);
    if (threads == 0) threads = default_threads();
    const PartialOptions options{
        .by_file = by_file != 0, .paths = by_path != 0, .samples = samples};
    std::vector<Partial> partials(threads, Partial(options));
    Outcome outcome;
    run(progress, [&](Control& control) {
      outcome = scan(
          list, threads,
          [&](unsigned worker, Block& block) {
            Adder add(partials[worker], block.file().index, block.ordinal());
            if (options.paths) {
              block.records(add);
            } else {
              block.brief_records(add);
            }
          },
          &control);
      for (unsigned i = 1; i < threads; ++i) partials[0].add(std::move(partials[i]));
      partials[0].finish();
    });
    return to_python(outcome, partials[0]);
  });
}

constexpr const char* kResultName = "dftracer.stream_result";

bool columns_from(PyObject* columns, std::vector<Col>& out) {
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
    out.push_back(static_cast<Col>(column));
  }
  return true;
}

bool options_from(PyObject* columns, int nanoseconds, int all_rows, TableOptions& options) {
  options.nanoseconds = nanoseconds != 0;
  options.rows = all_rows != 0 ? Rows::kAll : Rows::kEvents;
  if (columns == nullptr || columns == Py_None) return true;
  if (!columns_from(columns, options.columns)) return false;
  if (options.columns.empty()) {
    PyErr_SetString(PyExc_ValueError, "at least one column is needed");
    return false;
  }
  return true;
}

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

void free_schema(PyObject* capsule) {
  auto* schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(capsule, "arrow_schema"));
  if (schema == nullptr) return;
  if (schema->release != nullptr) schema->release(schema);
  delete schema;
}

void free_result(PyObject* capsule) {
  delete static_cast<std::shared_ptr<StreamResult>*>(PyCapsule_GetPointer(capsule, kResultName));
}

PyObject* stream_capsule(std::unique_ptr<ArrowArrayStream> stream) {
  PyObject* capsule = PyCapsule_New(stream.get(), "arrow_array_stream", free_stream);
  if (capsule == nullptr) {
    stream->release(stream.get());
    throw PythonError();
  }
  stream.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  return capsule;
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
    for (const Col column : options.coded) {
      if (column_info(column).type != ColType::kDictionary) {
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
    Ref out(to_python((*handle)->outcome, (*handle)->summary));
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
  Ref out(outcome_dict(done.outcome));
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
  if (name != "chrome" && name != "perfetto" && name != "speedscope") {
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
                                    : export_chrome(list, *out, threads, &control);
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

constexpr const char* kLongsName = "dftracer.longs";

// Goes through the rows of anything that gives an Arrow stream of integers.
void take_longs(PyObject* source, std::size_t columns, const TakeLongs& take) {
  const Ref capsule(checked(PyObject_CallMethod(source, "__arrow_c_stream__", nullptr)));
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.get(), "arrow_array_stream"));
  if (stream == nullptr) throw PythonError();
  std::exception_ptr failure;
  Py_BEGIN_ALLOW_THREADS;
  try {
    read_longs(stream, columns, take);
  } catch (...) {
    failure = std::current_exception();
  }
  Py_END_ALLOW_THREADS;
  if (failure) std::rethrow_exception(failure);
}

// The capsule owns the table.
PyObject* longs_capsule(Longs&& longs) {
  auto table = std::make_unique<std::shared_ptr<const Longs>>(
      std::make_shared<const Longs>(std::move(longs)));
  PyObject* capsule = checked(PyCapsule_New(table.get(), kLongsName, [](PyObject* own) {
    delete static_cast<std::shared_ptr<const Longs>*>(PyCapsule_GetPointer(own, kLongsName));
  }));
  table.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  return capsule;
}

PyObject* py_stream_words(PyObject* /*module*/, PyObject* args) {
  PyObject* holder = nullptr;
  const char* name = nullptr;
  if (PyArg_ParseTuple(args, "Os", &holder, &name) == 0) return nullptr;
  auto* handle =
      static_cast<std::shared_ptr<StreamResult>*>(PyCapsule_GetPointer(holder, kResultName));
  if (handle == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    Longs table;
    table.names = {"code"};
    table.columns.resize(1);
    table.text_name = "word";
    const std::lock_guard lock((*handle)->mutex);
    const int column = find_column(name);
    const auto found = (*handle)->words.find(static_cast<Col>(column));
    if (column >= 0 && found != (*handle)->words.end()) {
      for (const std::string& word : found->second) {
        table.columns[0].push_back(static_cast<std::int64_t>(table.columns[0].size()));
        table.add_text(word);
      }
    }
    return longs_capsule(std::move(table));
  });
}

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
    take_longs(spans, 4, [&](const auto& columns, std::int64_t rows) {
      for (std::int64_t i = 0; i < rows; ++i) {
        sweep.span(columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
      }
    });
    take_longs(windows, 4, [&](const auto& columns, std::int64_t rows) {
      for (std::int64_t i = 0; i < rows; ++i) {
        sweep.window(columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
      }
    });
    Longs table;
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
    const Ref longs(longs_capsule(std::move(table)));
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
      static_cast<std::shared_ptr<const Longs>*>(PyCapsule_GetPointer(holder, kLongsName));
  if (table == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    auto stream = std::make_unique<ArrowArrayStream>();
    open_longs(*table, stream.get());
    return stream_capsule(std::move(stream));
  });
}

PyObject* py_probe(PyObject* /*module*/, PyObject* paths) {
  return guarded([&]() -> PyObject* {
    Ref out(checked(PyList_New(0)));
    for (const std::string& path : paths_from(paths)) {
      File file;
      file.path = path;
      Py_BEGIN_ALLOW_THREADS;
      (void)open_file(file);  // its error is in the dictionary
      Py_END_ALLOW_THREADS;
      push(out.get(), file_dict(file));
    }
    return out.release();
  });
}

PyObject* py_columns(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    Ref out(checked(PyList_New(0)));
    for (std::size_t i = 0; i < kColumns; ++i) {
      push(out.get(), text(column_info(static_cast<Col>(i)).name));
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
    {"summarise", plain(py_summarise), METH_VARARGS | METH_KEYWORDS,
     "Statistics of trace files, by name, process and path, and what was damaged."},
    {"stream", plain(py_stream), METH_VARARGS | METH_KEYWORDS,
     "An Arrow stream of the events, and a handle for stream_result."},
    {"stream_result", py_stream_result, METH_O,
     "What a stream read; None until it has been read to its end."},
    {"schema", plain(py_schema), METH_VARARGS | METH_KEYWORDS, "The Arrow schema of the events."},
    {"export", plain(py_export), METH_VARARGS | METH_KEYWORDS,
     "Writes a trace as chrome, perfetto or speedscope."},
    {"view", plain(py_view), METH_VARARGS | METH_KEYWORDS,
     "Writes Chrome JSON of a part of a trace, for a viewer; to None, counts it."},
    {"sweep", plain(py_sweep), METH_VARARGS | METH_KEYWORDS,
     "How long which lanes were open at once, a handle for longs_stream; and when those of "
     "`gather` "
     "were open in any process, packed, by lane."},
    {"union_length", py_union_length, METH_O, "How long any of these packed intervals were open."},
    {"stream_words", py_stream_words, METH_VARARGS,
     "The texts of a coded column of a stream that was read to its end; for longs_stream."},
    {"longs_stream", py_longs_stream, METH_O, "An Arrow stream of a table of integers."},
    {"probe", py_probe, METH_O, "What the heads of files say: their kind, clock and run."},
    {"columns", py_columns, METH_NOARGS, "The names of all columns, in their order."},
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

PyMODINIT_FUNC PyInit__reader() {
  PyObject* module = PyModule_Create(&kModule);
  if (module != nullptr && PyModule_AddFunctions(module, kMergeMethods) != 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
