// Lineage: the events of the batches of one pass. Python calls begin, end, arrive, handed and call for
// each batch, on the thread that iterates the loader, builds the batch or pins its memory.
#include "python/lineage.hpp"

#include <algorithm>
#include <utility>

#include "python/region.hpp"
#include "python/support/error.hpp"
#include "python/support/type.hpp"
#include "record/event.hpp"

namespace dft::python {

PyTypeObject* g_lineage_type = nullptr;
PyObject* g_index_key = nullptr;

namespace {

PyObject* g_batch_key = nullptr;
PyObject* g_worker_key = nullptr;

}  // namespace

void Lineage::append_batch(std::string& out, long long number, PyObject* worker) const {
  out.append(front);
  append_int(out, g_batch_key, number);
  if (worker != Py_None) append_argument(out, g_worker_key, worker);
}

void Lineage::append_current(std::string& out) const {
  if (batch >= 0) append_int(out, g_batch_key, batch);
}

void append_samples(std::string& out, PyObject* index, long long items) {
  const bool is_list = PyList_Check(index) != 0;
  const Py_ssize_t count = is_list                     ? PyList_GET_SIZE(index)
                           : PyTuple_Check(index) != 0 ? PyTuple_GET_SIZE(index)
                                                       : 0;
  PyObject* const* first = count != 0 ? PySequence_Fast_ITEMS(index) : nullptr;
  if (count == 0 || *first == Py_None) {
    append_int(out, g_count_key, items);
    return;
  }
  const Py_ssize_t shown = std::min(count, kMostSamples);
  if (!append_ints(out, g_index_key, first, static_cast<std::size_t>(shown))) {
    const Ref part(PySequence_GetSlice(index, 0, shown));
    PyErr_Clear();
    if (part) append_argument(out, g_index_key, part.get());
  }
  if (shown != count) append_int(out, g_count_key, count);
}

namespace {

// Lineage(constant arguments, base of the flow ids)
PyObject* lineage_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* constant = nullptr;
  unsigned long long base = 0;
  if (!PyArg_ParseTuple(args, "O!K:Lineage", &PyDict_Type, &constant, &base)) return nullptr;
  Ref self = create<Lineage>(type);
  if (!self) return nullptr;
  auto& lineage = state_of<Lineage>(self.get());
  lineage.base = base;
  append_dict(lineage.front, constant);
  return self.release();
}

// begin(batch): the items that follow are of this batch.
PyObject* lineage_begin(PyObject* self, PyObject* number) {
  auto& lineage = state_of<Lineage>(self);
  lineage.batch = PyLong_AsLongLong(number);
  lineage.items = 0;
  if (lineage.batch == -1 && PyErr_Occurred() != nullptr) return nullptr;
  Py_RETURN_NONE;
}

bool are_given(Py_ssize_t count, Py_ssize_t least, const char* usage) {
  if (count >= least) return true;
  PyErr_SetString(PyExc_TypeError, usage);
  return false;
}

// end(region, batch, worker or None, ends of the flow[, samples]): ends and records a region.
PyObject* lineage_end(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!are_given(count, 4, "end(region, batch, worker, ends[, samples])")) return nullptr;
  if (!is_region(args[0])) {
    PyErr_SetString(PyExc_TypeError, "end(): not a region");
    return nullptr;
  }
  const auto& lineage = state_of<Lineage>(self);
  const long long number = PyLong_AsLongLong(args[1]);
  const long ends = PyLong_AsLong(args[3]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  std::string more;
  lineage.append_batch(more, number, args[2]);
  if (count > 4) append_samples(more, args[4], lineage.items);
  end_region(args[0], more, lineage.flow(number, ends));
  Py_RETURN_NONE;
}

// Takes a batch off the list of those that arrived; null if it is not there.
PyObject* take_arrival(Lineage& lineage, long long batch) {
  auto& all = lineage.arrived;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Lineage::Arrival& one) { return one.batch == batch; });
  if (found == all.end()) return nullptr;
  const long worker = found->worker;
  *found = all.back();
  all.pop_back();
  return PyLong_FromLong(worker);
}

// handed(region, batch, or -1 for the one that arrived last): ends a fetch. It has no batch if none
// was handed over.
PyObject* lineage_handed(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!are_given(count, 2, "handed(region, batch)")) return nullptr;
  if (!is_region(args[0])) {
    PyErr_SetString(PyExc_TypeError, "handed(): not a region");
    return nullptr;
  }
  auto& lineage = state_of<Lineage>(self);
  long long batch = PyLong_AsLongLong(args[1]);
  if (batch == -1) {
    if (PyErr_Occurred() != nullptr) return nullptr;
    batch = std::exchange(lineage.latest, -1);
  }
  const Ref worker(take_arrival(lineage, batch));
  if (!worker) {
    end_region(args[0], {}, {0, 0});
    Py_RETURN_NONE;
  }
  std::string more;
  lineage.append_batch(more, batch, worker.get());
  end_region(args[0], more, lineage.flow(batch, record::kFlowIn));
  Py_RETURN_NONE;
}

// arrive(node or None, result, tasks of the loader, type of a stream's end, keep): a worker's result
// was taken off its queue: (number of the batch, data). Recorded if a node is given, kept for handed()
// if `keep` is true. True if it is a batch of this pass.
PyObject* lineage_arrive(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!are_given(count, 5, "arrive(node, result, tasks, last, keep)")) return nullptr;
  PyObject* result = args[1];
  if (!PyTuple_CheckExact(result) || PyTuple_GET_SIZE(result) != 2 || !PyDict_Check(args[2]) ||
      !PyLong_CheckExact(PyTuple_GET_ITEM(result, 0)) ||
      reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(result, 1))) == args[3]) {
    Py_RETURN_FALSE;
  }
  PyObject* number = PyTuple_GET_ITEM(result, 0);
  // What is left of an earlier pass is no task of this one.
  PyObject* task = PyDict_GetItemWithError(args[2], number);
  if (task == nullptr || !PyTuple_Check(task) || PyTuple_GET_SIZE(task) == 0) {
    PyErr_Clear();
    Py_RETURN_FALSE;
  }
  auto& lineage = state_of<Lineage>(self);
  const long long batch = PyLong_AsLongLong(number);
  const long worker = PyLong_AsLong(PyTuple_GET_ITEM(task, 0));
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    Py_RETURN_FALSE;
  }
  if (args[4] == Py_True) {
    lineage.arrived.push_back({batch, worker});
    lineage.latest = batch;
  }
  if (is_node(args[0]) && node_of(args[0])->enabled) {
    Node& node = *node_of(args[0]);
    dftracer_region region;
    dftracer_open(&region, &node.names);
    std::string more;
    lineage.append_batch(more, batch, PyTuple_GET_ITEM(task, 0));
    close_flow(region, node, more, lineage.flow(batch, record::kFlowIn | record::kFlowOut));
  }
  Py_RETURN_TRUE;
}

// call(node, function, *arguments): the function's result; the call is an event of the batch.
PyObject* lineage_call(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (!are_given(count, 2, "call(node, function, *arguments)")) return nullptr;
  if (!is_node(args[0])) {
    PyErr_SetString(PyExc_TypeError, "call(): not a node");
    return nullptr;
  }
  Scope scope(*node_of(args[0]));
  PyObject* result =
      PyObject_Vectorcall(args[1], args + 2, static_cast<std::size_t>(count - 2), nullptr);
  if (scope.on()) {
    const SavedError saved;
    std::string more;
    state_of<Lineage>(self).append_current(more);
    scope.end(more);
  }
  return result;
}

PyMemberDef g_lineage_members[] = {
    {"batch", T_LONGLONG, DFT_OFFSET(Lineage, batch), READONLY, nullptr},
    {"items", T_LONGLONG, DFT_OFFSET(Lineage, items), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMethodDef g_lineage_methods[] = {
    {"begin", lineage_begin, METH_O, "The items that follow are of this batch."},
    {"end", as_method(lineage_end), METH_FASTCALL, "End a region and record it as a batch's."},
    {"arrive", as_method(lineage_arrive), METH_FASTCALL, "A result of a worker was received."},
    {"handed", as_method(lineage_handed), METH_FASTCALL, "End the fetch of a batch."},
    {"call", as_method(lineage_call), METH_FASTCALL, "Call a function as an event of the batch."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_lineage_slots[] = {{Py_tp_new, as_slot(lineage_new)},
                                 {Py_tp_dealloc, as_slot(deallocate<Lineage>)},
                                 {Py_tp_members, g_lineage_members},
                                 {Py_tp_methods, g_lineage_methods},
                                 {0, nullptr}};
PyType_Spec g_lineage_spec = {"dftracer._core.Lineage", sizeof(Object<Lineage>), 0,
                              Py_TPFLAGS_DEFAULT, g_lineage_slots};

}  // namespace

bool add_lineage_type(PyObject* module) {
  if (g_lineage_type == nullptr) {
    g_batch_key = intern("batch").release();
    g_worker_key = intern("worker").release();
    g_index_key = intern("index").release();
    g_lineage_type = make_type(g_lineage_spec);
  }
  return g_batch_key != nullptr && g_worker_key != nullptr && g_index_key != nullptr &&
         g_lineage_type != nullptr && add_type(module, "Lineage", g_lineage_type);
}

}  // namespace dft::python
