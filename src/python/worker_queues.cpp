// Tasks and Results stand between the loop of a worker and its two queues, and tell a Builder which
// batch the worker builds. They are here and not in Python because every batch runs through them, on
// the main thread of the worker.
#include <tuple>
#include <utility>

#include "python/lineage.hpp"
#include "python/support/type.hpp"
#include "record/event.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_builder_type = nullptr;
PyTypeObject* g_tasks_type = nullptr;
PyTypeObject* g_results_type = nullptr;

// The batches that a worker builds: from taking a task off its queue to giving its data to the other.
struct Builder {
  RefTo<Lineage> lineage;
  RefTo<Node> node;
  Ref list;  // a function: samples that are no list, as a list
  Ref samples;
  long long number = -1;
  bool open = false;
  dftracer_region region;

  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder() { drop(); }

  void drop() {
    if (open) dftracer_region_drop(&region);
    open = false;
    samples.reset();
  }
  void take(PyObject* task);
  void give(PyObject* result, PyObject* last);
  auto visits() { return std::tie(list, samples, node); }
};

void Builder::take(PyObject* task) {
  drop();  // a task that the worker skipped: the loader is shutting down
  if (!node || !node->enabled || PyTuple_GET_SIZE(task) != 2) return;
  number = PyLong_CheckExact(PyTuple_GET_ITEM(task, 0))
               ? PyLong_AsLongLong(PyTuple_GET_ITEM(task, 0))
               : -1;
  if (number < 0) return PyErr_Clear();
  samples = Ref::borrow(PyTuple_GET_ITEM(task, 1));
  lineage->batch = number;
  lineage->items = 0;
  dftracer_open(&region, &node->names);
  open = true;
}

void Builder::give(PyObject* result, PyObject* last) {
  if (!open) return;
  const bool is_result = PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2;
  // At its end, a stream may have read a part of a batch, which the loader discards.
  if (!is_result || (lineage->items == 0 &&
                     reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(result, 1))) == last)) {
    return drop();
  }
  std::string more;
  lineage->append_batch(more, number, Py_None);
  if (!PyList_CheckExact(samples.get()) && !PyTuple_CheckExact(samples.get())) {
    samples = Ref(PyObject_CallFunctionObjArgs(list.get(), samples.get(), nullptr));
    PyErr_Clear();
  }
  append_samples(more, samples ? samples.get() : Py_None, lineage->items);
  open = false;
  samples.reset();
  close_flow(region, *node, more, lineage->flow(number, record::kFlowOut));
}

// Builder(function that makes a list of samples)
PyObject* builder_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* list = nullptr;
  if (!PyArg_ParseTuple(args, "O:Builder", &list)) return nullptr;
  Ref self = create<Builder>(type);
  if (self) state_of<Builder>(self.get()).list = Ref::borrow(list);
  return self.release();
}

// set(node, lineage): for the batches that follow.
PyObject* builder_set(PyObject* self, PyObject* args) {
  PyObject* node = nullptr;
  PyObject* lineage = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!:set", g_node_type, &node, g_lineage_type, &lineage))
    return nullptr;
  auto& builder = state_of<Builder>(self);
  builder.drop();
  builder.node = RefTo<Node>::borrow(node_of(node));
  builder.lineage = RefTo<Lineage>::borrow(&state_of<Lineage>(lineage));
  Py_RETURN_NONE;
}

PyMethodDef g_builder_methods[] = {
    {"set", builder_set, METH_VARARGS, "The node and the pass of the batches that follow."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_builder_slots[] = {{Py_tp_new, as_slot(builder_new)},
                                 {Py_tp_dealloc, as_slot(deallocate<Builder>)},
                                 {Py_tp_traverse, as_slot(traverse<Builder>)},
                                 {Py_tp_methods, g_builder_methods},
                                 {0, nullptr}};
PyType_Spec g_builder_spec = {"dftracer._core.Builder", sizeof(Object<Builder>), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_builder_slots};

// One of the two queues of a worker, as its loop sees it.
struct WorkerQueue {
  Ref inner;
  Ref method;  // get or put, bound
  RefTo<Builder> builder;
  Ref other;  // Tasks: a function that is called with what is no task; Results: a stream's end

  auto visits() { return std::tie(inner, method, builder, other); }
};

// Tasks(queue, builder, function), Results(queue, builder, type of a stream's end)
PyObject* queue_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* inner = nullptr;
  PyObject* builder = nullptr;
  PyObject* other = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O", &inner, g_builder_type, &builder, &other)) return nullptr;
  Ref method(PyObject_GetAttrString(inner, type == g_tasks_type ? "get" : "put"));
  if (!method) return nullptr;
  Ref self = create<WorkerQueue>(type);
  if (!self) return nullptr;
  auto& queue = state_of<WorkerQueue>(self.get());
  queue.inner = Ref::borrow(inner);
  queue.method = std::move(method);
  queue.builder = RefTo<Builder>::borrow(&state_of<Builder>(builder));
  queue.other = Ref::borrow(other);
  return self.release();
}

PyObject* queue_getattr(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own != nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return own;
  PyErr_Clear();
  return PyObject_GetAttr(state_of<WorkerQueue>(self).inner.get(), name);
}

PyObject* tasks_get(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const auto& queue = state_of<WorkerQueue>(self);
  Ref task(
      PyObject_Vectorcall(queue.method.get(), args, static_cast<std::size_t>(count), keywords));
  if (!task) return nullptr;
  if (PyTuple_CheckExact(task.get())) {
    queue.builder->take(task.get());
  } else if (task.get() != Py_None) {
    const Ref done(PyObject_CallFunctionObjArgs(queue.other.get(), task.get(), nullptr));
    PyErr_Clear();
  }
  return task.release();
}

PyObject* results_put(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const auto& queue = state_of<WorkerQueue>(self);
  // The data may be gone once it is in the queue.
  const Ref result = count > 0 ? Ref::borrow(args[0]) : Ref();
  Ref done(
      PyObject_Vectorcall(queue.method.get(), args, static_cast<std::size_t>(count), keywords));
  if (done && result) queue.builder->give(result.get(), queue.other.get());
  return done.release();
}

PyMethodDef g_tasks_methods[] = {
    {"get", as_method(tasks_get), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef g_results_methods[] = {
    {"put", as_method(results_put), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_tasks_slots[] = {{Py_tp_new, as_slot(queue_new)},
                               {Py_tp_dealloc, as_slot(deallocate<WorkerQueue>)},
                               {Py_tp_traverse, as_slot(traverse<WorkerQueue>)},
                               {Py_tp_getattro, as_slot(queue_getattr)},
                               {Py_tp_methods, g_tasks_methods},
                               {0, nullptr}};
PyType_Slot g_results_slots[] = {{Py_tp_new, as_slot(queue_new)},
                                 {Py_tp_dealloc, as_slot(deallocate<WorkerQueue>)},
                                 {Py_tp_traverse, as_slot(traverse<WorkerQueue>)},
                                 {Py_tp_getattro, as_slot(queue_getattr)},
                                 {Py_tp_methods, g_results_methods},
                                 {0, nullptr}};
PyType_Spec g_tasks_spec = {"dftracer._core.Tasks", sizeof(Object<WorkerQueue>), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_tasks_slots};
PyType_Spec g_results_spec = {"dftracer._core.Results", sizeof(Object<WorkerQueue>), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_results_slots};

}  // namespace

bool add_worker_queue_types(PyObject* module) {
  if (g_builder_type == nullptr) {
    g_builder_type = make_type(g_builder_spec);
    g_tasks_type = make_type(g_tasks_spec);
    g_results_type = make_type(g_results_spec);
  }
  return g_builder_type != nullptr && g_tasks_type != nullptr && g_results_type != nullptr &&
         add_type(module, "Builder", g_builder_type) && add_type(module, "Tasks", g_tasks_type) &&
         add_type(module, "Results", g_results_type);
}

}  // namespace dft::python
