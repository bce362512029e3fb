#include "python/iter.hpp"

#include <new>

#include "python/types.hpp"

namespace dft::python {
namespace {

// Both events of an item are written when its body has ended, with the arguments of that moment:
// what a loop's body says of its step belongs to the step.
struct Iter {
  PyObject_HEAD;
  PyObject* inner;
  Node* node;
  OwnNames* wait_names;  // nullptr: not wanted
  OwnNames* body_names;
  bool renames_last;
  std::string number;  // of the item, as an argument
  long long count;
  dftracer_mark wait;
  dftracer_mark body;
  bool pending;  // an item was handed out, and its events are not written
};

PyTypeObject* g_iter_type = nullptr;

Iter* iter_of(PyObject* object) { return reinterpret_cast<Iter*>(object); }

void write_item(Iter& it, OwnNames* wait_names, OwnNames* body_names) {
  it.pending = false;
  if (!it.node->enabled) return;
  if (it.body.opaque[0] == 0) return count_missed();
  const std::uint64_t end = dftracer_ticks();
  const std::uint64_t start = it.body.opaque[2];
  replace_int(it.number, it.count);
  Ending endings[2];
  int count = 0;
  // The wait ends where the body begins.
  if (wait_names != nullptr) endings[count++] = {&it.wait, start, wait_names->get()};
  if (body_names != nullptr) endings[count++] = {&it.body, end, body_names->get()};
  close_marks(*it.node, it.number, endings, count);
}

// The last item of a loop that was left by `break` or by an exception. Programs count the items of
// a loop by the names of its events, and other releases record nothing here: NAME.last keeps their
// counts, and what happened.
[[gnu::noinline, gnu::cold]] void write_last(Iter& it) {
  if (!it.renames_last) return write_item(it, it.wait_names, it.body_names);
  OwnNames wait;
  OwnNames body;
  if (it.wait_names != nullptr) wait.set(it.wait_names->text() + ".last", *it.node);
  if (it.body_names != nullptr) body.set(it.body_names->text() + ".last", *it.node);
  write_item(it, it.wait_names != nullptr ? &wait : nullptr,
             it.body_names != nullptr ? &body : nullptr);
}

PyObject* iter_next(PyObject* self) {
  Iter& it = *iter_of(self);
  if (it.pending) write_item(it, it.wait_names, it.body_names);
  PyObject* inner = it.inner;
  if (inner == nullptr) return nullptr;
  dftracer_mark_open(&it.wait);
  Py_INCREF(inner);  // it may close this loop while it runs
  PyObject* item = Py_TYPE(inner)->tp_iternext(inner);
  Py_DECREF(inner);
  // Without an item, it is asked again next time: some iterators go on after an exception.
  if (item == nullptr) return nullptr;
  dftracer_mark_open(&it.body);
  ++it.count;
  it.pending = true;
  return item;
}

// Iter(node, iterable, wait name or None, body name or None, key, renames_last=True)
PyObject* iter_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* node = nullptr;
  PyObject* iterable = nullptr;
  PyObject* wait = nullptr;
  PyObject* body = nullptr;
  PyObject* key = nullptr;
  int renames_last = 1;
  if (!PyArg_ParseTuple(args, "O!OOOU|p:Iter", g_node_type, &node, &iterable, &wait, &body, &key,
                        &renames_last)) {
    return nullptr;
  }
  PyObject* inner = PyObject_GetIter(iterable);
  if (inner == nullptr) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) {
    Py_DECREF(inner);
    return nullptr;
  }
  Iter& it = *iter_of(self);
  it.inner = inner;
  it.renames_last = renames_last != 0;
  Py_INCREF(node);
  it.node = node_of(node);
  new (&it.number) std::string();
  append_int(it.number, key, 0);
  OwnNames** const names[] = {&it.wait_names, &it.body_names};
  PyObject* const given[] = {wait, body};
  for (int i = 0; i < 2; ++i) {
    if (given[i] == Py_None) continue;
    PyObject* held = nullptr;
    *names[i] = new OwnNames;
    (*names[i])->set(text_of(given[i], held), *it.node);
    Py_XDECREF(held);
  }
  return self;
}

PyObject* iter_itself(PyObject* self) {
  Py_INCREF(self);
  return self;
}

// A loop that is left early, or a body that raises, still has its last item.
PyObject* iter_close(PyObject* self, PyObject*) {
  Iter& it = *iter_of(self);
  if (it.pending) write_last(it);
  Py_CLEAR(it.inner);
  Py_RETURN_NONE;
}

PyObject* iter_length_hint(PyObject* self, PyObject*) {
  Iter& it = *iter_of(self);
  const Py_ssize_t hint = it.inner != nullptr ? PyObject_LengthHint(it.inner, 0) : 0;
  return hint < 0 ? nullptr : PyLong_FromSsize_t(hint);
}

int iter_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(iter_of(self)->inner);
  Py_VISIT(iter_of(self)->node);
  return 0;
}

int iter_clear(PyObject* self) {
  Py_CLEAR(iter_of(self)->inner);
  return 0;
}

void iter_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Iter& it = *iter_of(self);
  if (it.pending) {
    KeepError keep;
    write_last(it);
  }
  iter_clear(self);
  Py_CLEAR(it.node);
  using std::string;
  it.number.~string();
  delete it.wait_names;
  delete it.body_names;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef g_methods[] = {{"close", iter_close, METH_NOARGS, "End the last item now."},
                           {"__length_hint__", iter_length_hint, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_slots[] = {{Py_tp_new, as_slot(iter_new)},
                         {Py_tp_dealloc, as_slot(iter_dealloc)},
                         {Py_tp_traverse, as_slot(iter_traverse)},
                         {Py_tp_clear, as_slot(iter_clear)},
                         {Py_tp_iter, as_slot(iter_itself)},
                         {Py_tp_iternext, as_slot(iter_next)},
                         {Py_tp_methods, g_methods},
                         {0, nullptr}};
PyType_Spec g_spec = {"dftracer._core.Iter", sizeof(Iter), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_slots};

}  // namespace

bool add_iter_type(PyObject* module) {
  if (g_iter_type == nullptr) g_iter_type = make_type(g_spec);
  return g_iter_type != nullptr && add_type(module, "Iter", g_iter_type);
}

}  // namespace dft::python
