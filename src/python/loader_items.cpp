// Items and Stream stand between a fetcher of torch and its dataset, and record each item that it
// reads. They are here and not in Python because every sample runs through them, on the thread that
// builds the batch.
#include <tuple>

#include "python/lineage.hpp"
#include "python/support/error.hpp"
#include "python/support/type.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_items_type = nullptr;
PyTypeObject* g_stream_type = nullptr;
// In a sample of webdataset, and as arguments.
PyObject* g_sample_key = nullptr;
PyObject* g_sample_url = nullptr;
PyObject* g_key_key = nullptr;
PyObject* g_url_key = nullptr;

// What a fetcher of torch sees in place of its dataset, or of the iterator of a stream.
struct Source {
  Ref inner;
  RefTo<Node> node;
  RefTo<Lineage> lineage;  // empty where batches are not known

  auto visits() { return std::tie(inner, node); }
  auto clears() { return std::tie(inner); }
};

// Items(dataset, node, lineage or None), Stream(iterator, node, lineage or None)
PyObject* source_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* inner = nullptr;
  PyObject* node = nullptr;
  PyObject* lineage = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O", &inner, g_node_type, &node, &lineage)) return nullptr;
  const bool fits = lineage == Py_None || Py_TYPE(lineage) == g_lineage_type;
  if (!fits || (type == g_stream_type && PyIter_Check(inner) == 0)) {
    PyErr_SetString(PyExc_TypeError, "a dataset or an iterator, a node, and a lineage or None");
    return nullptr;
  }
  Ref self = create<Source>(type);
  if (!self) return nullptr;
  auto& source = state_of<Source>(self.get());
  source.inner = Ref::borrow(inner);
  source.node = RefTo<Node>::borrow(node_of(node));
  if (lineage != Py_None) {
    source.lineage = RefTo<Lineage>::borrow(&state_of<Lineage>(lineage));
  }
  return self.release();
}

// Everything else is the dataset's own.
PyObject* source_getattr(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  PyObject* inner = state_of<Source>(self).inner.get();
  if (own != nullptr || inner == nullptr || PyErr_ExceptionMatches(PyExc_AttributeError) == 0)
    return own;
  PyErr_Clear();
  return PyObject_GetAttr(inner, name);
}

PyObject* items_get(PyObject* self, PyObject* index) {
  const auto& source = state_of<Source>(self);
  Scope scope(*source.node);
  PyObject* item = PyObject_GetItem(source.inner.get(), index);
  if (!scope.on()) return item;
  if (source.lineage) ++source.lineage->items;
  const SavedError saved;
  std::string more;
  append_argument(more, g_index_key, index);
  if (source.lineage) source.lineage->append_current(more);
  scope.end(more);
  return item;
}

// A text, or a list of them where the stream yields whole batches.
void append_texts(std::string& out, PyObject* key, PyObject* sample, PyObject* field) {
  PyObject* value = PyDict_GetItemWithError(sample, field);
  if (value == nullptr) return;
  if (PyUnicode_CheckExact(value)) {
    append_argument(out, key, value);
  } else if (PyList_CheckExact(value)) {
    const Ref shown(PyList_GetSlice(value, 0, kMostSamples));
    if (shown) append_argument(out, key, shown.get());
  }
}

PyObject* stream_next(PyObject* self) {
  const auto& source = state_of<Source>(self);
  PyObject* inner = source.inner.get();
  if (inner == nullptr) return nullptr;
  Scope scope(*source.node);
  PyObject* item = Py_TYPE(inner)->tp_iternext(inner);
  if (!scope.on()) return item;
  // The end of the stream is no item.
  if (item == nullptr &&
      (PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_StopIteration) != 0)) {
    return nullptr;
  }
  if (source.lineage) ++source.lineage->items;
  const SavedError saved;
  std::string more;
  if (source.lineage) source.lineage->append_current(more);
  if (item != nullptr && PyDict_Check(item)) {
    append_texts(more, g_key_key, item, g_sample_key);
    append_texts(more, g_url_key, item, g_sample_url);
    PyErr_Clear();
  }
  scope.end(more);
  return item;
}

PyType_Slot g_items_slots[] = {{Py_tp_new, as_slot(source_new)},
                               {Py_tp_dealloc, as_slot(deallocate<Source>)},
                               {Py_tp_traverse, as_slot(traverse<Source>)},
                               {Py_tp_clear, as_slot(clear<Source>)},
                               {Py_tp_getattro, as_slot(source_getattr)},
                               {Py_mp_subscript, as_slot(items_get)},
                               {0, nullptr}};
PyType_Spec g_items_spec = {"dftracer._core.Items", sizeof(Object<Source>), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_items_slots};

PyType_Slot g_stream_slots[] = {{Py_tp_new, as_slot(source_new)},
                                {Py_tp_dealloc, as_slot(deallocate<Source>)},
                                {Py_tp_traverse, as_slot(traverse<Source>)},
                                {Py_tp_clear, as_slot(clear<Source>)},
                                {Py_tp_getattro, as_slot(source_getattr)},
                                {Py_tp_iter, as_slot(return_self)},
                                {Py_tp_iternext, as_slot(stream_next)},
                                {0, nullptr}};
PyType_Spec g_stream_spec = {"dftracer._core.Stream", sizeof(Object<Source>), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_stream_slots};

}  // namespace

bool add_loader_item_types(PyObject* module) {
  if (g_items_type == nullptr) {
    g_sample_key = intern("__key__").release();
    g_sample_url = intern("__url__").release();
    g_key_key = intern("key").release();
    g_url_key = intern("url").release();
    g_items_type = make_type(g_items_spec);
    g_stream_type = make_type(g_stream_spec);
  }
  return g_sample_key != nullptr && g_sample_url != nullptr && g_key_key != nullptr &&
         g_url_key != nullptr && g_items_type != nullptr && g_stream_type != nullptr &&
         add_type(module, "Items", g_items_type) && add_type(module, "Stream", g_stream_type);
}

}  // namespace dft::python
