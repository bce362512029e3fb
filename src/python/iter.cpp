// Iter: a loop whose items are recorded. Python calls iter_next for each item, on the thread that
// runs the loop.
#include "python/iter.hpp"

#include <memory>
#include <tuple>

#include "python/node.hpp"
#include "python/support/error.hpp"
#include "python/support/type.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_iter_type = nullptr;

// Both events of an item are written when its body has ended, with the arguments of that moment:
// what the body of a loop sets for its step belongs to the step.
struct Iter {
  Ref inner;
  RefTo<Node> node;
  std::unique_ptr<OwnNames> wait_names;  // null: this event is not wanted
  std::unique_ptr<OwnNames> body_names;
  bool renames_last = true;
  std::string number;  // of the item, as an argument
  long long count = 0;
  dftracer_mark wait{};
  dftracer_mark body{};
  bool pending = false;  // an item was handed out, and its events are not written

  Iter() = default;
  Iter(const Iter&) = delete;
  Iter& operator=(const Iter&) = delete;
  // A loop that is left early, or whose body raises, still has its last item.
  ~Iter() {
    if (!pending) return;
    SavedError saved;
    write_last();
  }

  void write_item() { write_item(wait_names.get(), body_names.get()); }
  void write_last();
  auto visits() { return std::tie(inner, node); }
  auto clears() { return std::tie(inner); }

 private:
  void write_item(OwnNames* wait_name, OwnNames* body_name);
};

void Iter::write_item(OwnNames* wait_name, OwnNames* body_name) {
  pending = false;
  if (!node->enabled) return;
  if (body.opaque[0] == 0) return count_missed();
  const std::uint64_t end = dftracer_ticks();
  const std::uint64_t start = body.opaque[2];
  replace_int(number, count);
  EndedMark ended[2];
  int ended_count = 0;
  // The wait ends where the body begins.
  if (wait_name != nullptr) ended[ended_count++] = {&wait, start, wait_name->get()};
  if (body_name != nullptr) ended[ended_count++] = {&body, end, body_name->get()};
  close_marks(*node, number, ended, ended_count);
}

// The last item of a loop that was left by `break` or by an exception. Programs count the items of
// a loop by the names of its events, and other releases record nothing here: as NAME.last, those
// counts stay the same and the item is still recorded.
[[gnu::noinline, gnu::cold]] void Iter::write_last() {
  if (!renames_last) return write_item();
  const auto renamed = [this](const OwnNames* names) {
    return names != nullptr ? std::make_unique<OwnNames>(names->text() + ".last", *node) : nullptr;
  };
  write_item(renamed(wait_names.get()).get(), renamed(body_names.get()).get());
}

// Counts references by hand: every item of a loop runs through it.
PyObject* iter_next(PyObject* self) {
  Iter& it = state_of<Iter>(self);
  if (it.pending) it.write_item();
  PyObject* inner = it.inner.get();
  if (inner == nullptr) return nullptr;
  dftracer_mark_open(&it.wait);
  Py_INCREF(inner);  // it may close this loop while it runs
  PyObject* item = Py_TYPE(inner)->tp_iternext(inner);
  Py_DECREF(inner);
  // Without an item, the next call tries again: some iterators continue after an exception.
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
  Ref inner(PyObject_GetIter(iterable));
  if (!inner) return nullptr;
  Ref self = create<Iter>(type);
  if (!self) return nullptr;
  Iter& it = state_of<Iter>(self.get());
  it.inner = std::move(inner);
  it.renames_last = renames_last != 0;
  it.node = RefTo<Node>::borrow(node_of(node));
  append_int(it.number, key, 0);
  if (wait != Py_None) it.wait_names = std::make_unique<OwnNames>(wait, *it.node);
  if (body != Py_None) it.body_names = std::make_unique<OwnNames>(body, *it.node);
  return self.release();
}

PyObject* iter_close(PyObject* self, PyObject*) {
  Iter& it = state_of<Iter>(self);
  if (it.pending) it.write_last();
  it.inner.reset();
  Py_RETURN_NONE;
}

PyObject* iter_length_hint(PyObject* self, PyObject*) {
  const Iter& it = state_of<Iter>(self);
  const Py_ssize_t hint = it.inner ? PyObject_LengthHint(it.inner.get(), 0) : 0;
  return hint < 0 ? nullptr : PyLong_FromSsize_t(hint);
}

PyMethodDef g_methods[] = {{"close", iter_close, METH_NOARGS, "End the last item now."},
                           {"__length_hint__", iter_length_hint, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_slots[] = {{Py_tp_new, as_slot(iter_new)},
                         {Py_tp_dealloc, as_slot(deallocate<Iter>)},
                         {Py_tp_traverse, as_slot(traverse<Iter>)},
                         {Py_tp_clear, as_slot(clear<Iter>)},
                         {Py_tp_iter, as_slot(return_self)},
                         {Py_tp_iternext, as_slot(iter_next)},
                         {Py_tp_methods, g_methods},
                         {0, nullptr}};
PyType_Spec g_spec = {"dftracer._core.Iter", sizeof(Object<Iter>), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_slots};

}  // namespace

bool add_iter_type(PyObject* module) {
  if (g_iter_type == nullptr) g_iter_type = make_type(g_spec);
  return g_iter_type != nullptr && add_type(module, "Iter", g_iter_type);
}

}  // namespace dft::python
