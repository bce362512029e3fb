// dftracer._reader.summarise: the statistics of traces as dictionaries and tuples.
// Called with the interpreter's lock; files are read without it.
#include <algorithm>
#include <string>
#include <vector>

#include "reader/python/methods.hpp"
#include "reader/python/support.hpp"
#include "reader/stats/stats.hpp"

namespace dft::reader::python {
namespace {

void put_bytes(PyObject* dict, const Bytes& bytes) {
  put(dict, "read_bytes", number(bytes.read));
  put(dict, "write_bytes", number(bytes.written));
  put(dict, "read_unknown", number(bytes.read_unknown));
  put(dict, "write_unknown", number(bytes.write_unknown));
}

PyObject* row_dict(const Stats::NameRow& name) {
  const CallTotals& row = name.row;
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
  const ProcessTexts& said = process.texts();
  constexpr Py_ssize_t kFields = 32;
  Ref out(checked(PyTuple_New(kFields)));
  Py_ssize_t at = 0;
  // PyTuple_SetItem, which knows the tuple's size: a field too many is an error and not a crash.
  const auto add = [&](PyObject* value) {
    if (PyTuple_SetItem(out.get(), at++, checked(value)) != 0) checked(nullptr);
  };
  add(number(process.file));
  add(integer(process.pid));
  add(new_reference(host));
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
  add(process.cpu_wait < 0 ? nothing() : integer(process.cpu_wait));
  add(number(process.starts));
  add(number(process.ends));
  add(boolean(process.recovered));
  add(number(process.lost));
  add(process.promised < 0 ? nothing() : integer(process.promised));
  add(integer(process.ring_requests));
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

}  // namespace

PyObject* to_python(const ScanResult& scan_result, const Stats& stats) {
  Ref out(scan_dict(scan_result));
  Ref rows(checked(PyList_New(0)));
  for (const Stats::NameRow& row : stats.names) push(rows.get(), row_dict(row));
  put(out.get(), "names", rows.release());
  Ref processes(checked(PyList_New(0)));
  Ref host(text({}));
  const ProcessRow* before = nullptr;
  for (const ProcessRow& process : stats.processes) {
    if (before == nullptr || before->host != process.host) host = Ref(text(process.host));
    before = &process;
    push(processes.get(), process_tuple(process, host.get()));
  }
  put(out.get(), "processes", processes.release());
  Ref paths(checked(PyList_New(0)));
  for (const auto& [path, row] : stats.by_path) push(paths.get(), path_dict(path, row));
  put(out.get(), "paths", paths.release());
  put(out.get(), "paths_unknown", number(stats.paths_unknown));
  Ref pipes(checked(PyDict_New()));
  put_bytes(pipes.get(), stats.pipes);
  put(out.get(), "pipes", pipes.release());
  Ref hosts(checked(PyDict_New()));
  for (const auto& [hash, name] : stats.hosts) {
    const Ref key(text(hash));
    const Ref value(text(name));
    if (PyDict_SetItem(hosts.get(), key.get(), value.get()) != 0) throw PythonError();
  }
  put(out.get(), "hosts", hosts.release());
  Ref facts(checked(PyList_New(0)));
  for (std::size_t i = 0; i < scan_result.files.size(); ++i) {
    const auto found = stats.files.find(static_cast<std::uint32_t>(i));
    push(facts.get(), facts_dict(found == stats.files.end() ? FileFacts() : found->second));
  }
  put(out.get(), "facts", facts.release());
  return out.release();
}

namespace {

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
    const StatsOptions options{.by_file = by_file != 0, .paths = by_path != 0, .samples = samples};
    std::vector<Stats> parts(threads, Stats(options));
    ScanResult scan_result;
    run(progress, [&](Control& control) {
      scan_result = scan(
          list, threads,
          [&](unsigned worker, Block& block) {
            StatsAdder add(parts[worker], block.file().index, block.ordinal());
            if (options.paths) {
              block.records(add);
            } else {
              block.brief_records(add);
            }
          },
          &control);
      for (unsigned i = 1; i < threads; ++i) parts[0].add(std::move(parts[i]));
      parts[0].finish();
    });
    return to_python(scan_result, parts[0]);
  });
}

}  // namespace

PyMethodDef kSummaryMethods[] = {
    {"summarise", as_method(py_summarise), METH_VARARGS | METH_KEYWORDS,
     "Statistics of trace files, by name, process and path, and what was damaged."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace dft::reader::python
