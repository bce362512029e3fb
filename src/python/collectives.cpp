// The path of a collective: which group it belongs to, its number there, and its event. It is here and
// not in Python because a step of a training makes many, between kernels that have pushed everything
// else out of the caches. Python calls it on the thread that makes the collective, and _collectives.py
// does what happens once per process group.
#include "python/collectives.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/node.hpp"
#include "python/support/cpython.hpp"
#include "python/support/critical_section.hpp"
#include "python/support/error.hpp"
#include "python/support/type.hpp"

namespace dft::python {
namespace {

PyTypeObject* g_group_type = nullptr;
PyTypeObject* g_collectives_type = nullptr;
PyTypeObject* g_collective_type = nullptr;
// Arguments of events.
PyObject* g_function_key = nullptr;
PyObject* g_seq_key = nullptr;
PyObject* g_async_key = nullptr;
PyObject* g_bytes_key = nullptr;
// Names in PyTorch and in our own Python code.
PyObject* g_group_name = nullptr;
PyObject* g_world_name = nullptr;
PyObject* g_default_group_name = nullptr;
PyObject* g_nodes_name = nullptr;
PyObject* g_comm_name = nullptr;
PyObject* g_wait_name = nullptr;
PyObject* g_nbytes_name = nullptr;

// Whether a collective is in progress in this thread: only the outermost call is an event.
constinit thread_local bool t_inside __attribute__((tls_model("initial-exec"))) = false;

// A process group: what its events say, and how many there were.
struct Group {
  Ref facts;
  std::string front;  // the facts, encoded
  long long count = 0;
  Ref reference;  // to the process group, which it does not keep alive

  long long take() { return __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }
};

// Group(facts)
PyObject* group_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* facts = nullptr;
  if (!PyArg_ParseTuple(args, "O!:Group", &PyDict_Type, &facts)) return nullptr;
  Ref self = create<Group>(type);
  if (!self) return nullptr;
  auto& group = state_of<Group>(self.get());
  group.facts = Ref::borrow(facts);
  append_dict(group.front, facts);
  return self.release();
}

// complete(node, function, start, duration, bytes): the next collective, which somebody else timed.
PyObject* group_complete(PyObject* self, PyObject* args) {
  PyObject* node_object = nullptr;
  PyObject* function = nullptr;
  unsigned long long start = 0;
  unsigned long long duration = 0;
  long long bytes = 0;
  if (!PyArg_ParseTuple(args, "O!OKKL:complete", g_node_type, &node_object, &function, &start,
                        &duration, &bytes)) {
    return nullptr;
  }
  auto& group = state_of<Group>(self);
  const long long number = group.take();
  Node& node = *node_of(node_object);
  if (!node.enabled || dftracer_active() == 0) Py_RETURN_NONE;
  std::string says(current_arguments(node));
  append_argument(says, g_function_key, function);
  says.append(group.front);
  append_int(says, g_seq_key, number);
  append_int(says, g_bytes_key, bytes);
  dftracer_complete_with(&node.names, start, duration, says.data(), says.size());
  Py_RETURN_NONE;
}

// A node, valid while `nodes` of the counters is this object: the worker of a loader makes new ones.
struct CachedNode {
  Ref owner;
  RefTo<Node> node;
};

// What the collectives of one process share.
struct Collectives {
  Ref progress;     // the counters of epochs and steps, which have the nodes
  Ref module;       // the dictionary of torch.distributed.distributed_c10d
  Ref enter;        // makes the Group of a process group, or returns None
  Ref start;        // starts the trace
  Ref first_bytes;  // of the arguments and keywords of a call
  Ref tensor_type;
  Ref work_type;
  bool is_started = false;
  std::vector<RefTo<Group>> groups;  // few; the latest one first
  CachedNode wait;
  // What was started and not yet collected: by its weak reference, which CPython makes once.
  struct Pending {
    Ref reference;
    std::string says;
  };
  std::unordered_map<PyObject*, Pending> pending;
  std::size_t most_pending = 64;  // more are searched for those that are gone

  auto visits() { return std::tie(progress, module, enter, start, first_bytes); }
  auto clears() { return std::tie(progress, module, enter, start, first_bytes); }
};

// Collectives(progress, module, enter, start, first_bytes, tensor_type, work_type or None)
PyObject* collectives_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* given[7] = {};
  if (!PyArg_ParseTuple(args, "OO!OOOOO:Collectives", &given[0], &PyDict_Type, &given[1], &given[2],
                        &given[3], &given[4], &given[5], &given[6])) {
    return nullptr;
  }
  Ref self = create<Collectives>(type);
  if (!self) return nullptr;
  auto& all = state_of<Collectives>(self.get());
  Ref* const members[] = {&all.progress,    &all.module,      &all.enter,    &all.start,
                          &all.first_bytes, &all.tensor_type, &all.work_type};
  for (std::size_t i = 0; i < std::size(given); ++i) *members[i] = Ref::borrow(given[i]);
  return self.release();
}

// The process group of calls that name none, without the two properties that lead there; empty where
// this release of PyTorch keeps it elsewhere.
Ref default_group(const Collectives& all) {
  PyObject* world = PyDict_GetItemWithError(all.module.get(), g_world_name);
  if (world == nullptr) return {};
  return attribute_without_code(world, g_default_group_name);
}

// The Group that is known for a process group; the latest first, because a program uses one at a time.
RefTo<Group> known_group(Collectives& all, PyObject* process_group) {
  const CriticalSection section(object_of(&all));
  auto& groups = all.groups;
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const RefTo<Group>& one) {
    return referent(one->reference.get()).get() == process_group;
  });
  if (found == groups.end()) return {};
  std::iter_swap(groups.begin(), found);
  return groups.front();
}

// Empty where this rank is not in the group, or where it has no name. Never raises.
RefTo<Group> find_group(Collectives& all, PyObject* process_group) {
  Ref held = Ref::borrow(process_group);
  if (process_group == Py_None) held = default_group(all);
  if (held) {
    if (RefTo<Group> known = known_group(all, held.get())) return known;
  } else {
    held = Ref::borrow(Py_None);
  }
  const Ref made(PyObject_CallOneArg(all.enter.get(), held.get()));
  if (!made || Py_TYPE(made.get()) != g_group_type) {
    PyErr_Clear();
    return {};
  }
  auto group = RefTo<Group>::borrow(&state_of<Group>(made.get()));
  const Ref reference(PyWeakref_NewRef(held.get(), nullptr));
  PyErr_Clear();
  if (!reference) return group;  // found by name at every call
  const CriticalSection section(object_of(&all));
  group->reference = reference;
  auto& groups = all.groups;
  const auto gone = [&](const RefTo<Group>& one) {
    return one.get() == group.get() || !referent(one->reference.get());
  };
  groups.erase(std::remove_if(groups.begin(), groups.end(), gone), groups.end());
  groups.insert(groups.begin(), group);
  return group;
}

// find(process group or None): its Group, or None.
PyObject* collectives_find(PyObject* self, PyObject* process_group) {
  const RefTo<Group> group = find_group(state_of<Collectives>(self), process_group);
  return new_reference(group ? object_of(group.get()) : Py_None);
}

// nodes.comm.<name> of the counters; empty, without an error, where there is none.
RefTo<Node> find_node(const Collectives& all, CachedNode& cached, PyObject* name) {
  const Ref nodes = attribute_without_code(all.progress.get(), g_nodes_name);
  if (!nodes) return {};
  const CriticalSection section(object_of(&all));
  if (nodes.get() == cached.owner.get()) return cached.node;
  const Ref comm(PyObject_GetAttr(nodes.get(), g_comm_name));
  const Ref node(comm ? PyObject_GetAttr(comm.get(), name) : nullptr);
  PyErr_Clear();
  if (!node || !is_node(node.get())) return {};
  cached = {nodes, RefTo<Node>::borrow(node_of(node.get()))};
  return cached.node;
}

// An event that begins here and is recorded by end().
class Event {
 public:
  explicit Event(RefTo<Node> node) : node_(std::move(node)), on_(node_ && node_->enabled) {
    if (on_) dftracer_open(&region_, &node_->names);
  }
  ~Event() {
    if (on_) dftracer_region_drop(&region_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void end(std::string_view says) {
    if (on_) close_region(region_, *node_, says);
    on_ = false;
  }

 private:
  RefTo<Node> node_;
  bool on_;
  dftracer_region region_;
};

PyObject* call(PyObject* target, PyObject* args, PyObject* keywords) {
  const UncountedCall uncounted;
  return PyObject_Call(target, args, keywords);
}

// A collective function of PyTorch.
struct Collective {
  RefTo<Collectives> all;
  Ref target;
  Ref event;          // the name of its events
  std::string front;  // the name of the function, encoded
  Py_ssize_t place = 0;
  bool is_matched = true;  // with the calls of other ranks
  CachedNode node;

  auto visits() { return std::tie(all, target); }
};

// Collective(collectives, target, function, event, position of `group`, is_matched)
PyObject* collective_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* all = nullptr;
  PyObject* target = nullptr;
  PyObject* function = nullptr;
  PyObject* event = nullptr;
  Py_ssize_t place = 0;
  int is_matched = 0;
  if (!PyArg_ParseTuple(args, "O!OUUnp:Collective", g_collectives_type, &all, &target, &function,
                        &event, &place, &is_matched)) {
    return nullptr;
  }
  Ref self = create<Collective>(type);
  if (!self) return nullptr;
  auto& collective = state_of<Collective>(self.get());
  collective.all = RefTo<Collectives>::borrow(&state_of<Collectives>(all));
  collective.target = Ref::borrow(target);
  collective.event = Ref::borrow(event);
  collective.place = place;
  collective.is_matched = is_matched != 0;
  append_argument(collective.front, g_function_key, function);
  return self.release();
}

PyObject* passed_group(const Collective& collective, PyObject* args, PyObject* keywords) {
  if (PyTuple_GET_SIZE(args) > collective.place) return PyTuple_GET_ITEM(args, collective.place);
  PyObject* group = PyDict_GetItemWithError(keywords, g_group_name);
  return group != nullptr ? group : Py_None;
}

// Bytes of the first tensors among the arguments.
long long first_bytes(const Collectives& all, PyObject* args, PyObject* keywords) {
  PyObject* first = PyTuple_GET_SIZE(args) != 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  Ref size;
  if (first != nullptr && reinterpret_cast<PyObject*>(Py_TYPE(first)) == all.tensor_type.get()) {
    size = Ref(PyObject_GetAttr(first, g_nbytes_name));
  } else {
    PyObject* given[] = {args, keywords};
    size = Ref(PyObject_Vectorcall(all.first_bytes.get(), given, 2, nullptr));
  }
  const long long bytes = size ? PyLong_AsLongLong(size.get()) : 0;
  if (PyErr_Occurred() == nullptr) return bytes;
  PyErr_Clear();
  return 0;
}

void start_trace(Collectives& all) {
  if (all.is_started) [[likely]]
    return;
  all.is_started = true;
  const Ref done(PyObject_CallNoArgs(all.start.get()));
  PyErr_Clear();
}

// Remembers what a call with async_op=True said, for the wait for it; true if the result is such.
bool keep_pending(Collectives& all, PyObject* result, const std::string& says) {
  if (result == nullptr || result == Py_None || PyType_Check(all.work_type.get()) == 0)
    return false;
  auto* type = reinterpret_cast<PyTypeObject*>(all.work_type.get());
  if (PyObject_TypeCheck(result, type) == 0) return false;
  Ref reference(PyWeakref_NewRef(result, nullptr));
  PyErr_Clear();
  if (!reference) return true;
  const CriticalSection section(object_of(&all));
  if (all.pending.size() >= all.most_pending) {
    std::erase_if(all.pending, [](const auto& one) { return !referent(one.first); });
    all.most_pending = std::max<std::size_t>(64, 2 * all.pending.size());
  }
  PyObject* key = reference.get();
  all.pending[key] = {std::move(reference), says};
  return true;
}

// call(arguments, keywords): calls the function and records that.
PyObject* collective_call(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  if (count != 2 || !PyTuple_CheckExact(given[0]) || !PyDict_CheckExact(given[1])) {
    PyErr_SetString(PyExc_TypeError, "call(arguments, keywords)");
    return nullptr;
  }
  auto& collective = state_of<Collective>(self);
  Collectives& all = *collective.all;
  PyObject* args = given[0];
  PyObject* keywords = given[1];
  if (t_inside || !all.enter) return call(collective.target.get(), args, keywords);
  start_trace(all);
  std::string says = collective.front;
  if (collective.is_matched) {
    if (const RefTo<Group> group = find_group(all, passed_group(collective, args, keywords))) {
      says.append(group->front);
      append_int(says, g_seq_key, group->take());
    }
  }
  const long long bytes = first_bytes(all, args, keywords);
  Event event(find_node(all, collective.node, collective.event.get()));
  t_inside = true;
  PyObject* result = call(collective.target.get(), args, keywords);
  t_inside = false;
  const SavedError saved;
  if (keep_pending(all, result, says)) append_argument(says, g_async_key, Py_True);
  append_int(says, g_bytes_key, bytes);
  event.end(says);
  return result;
}

// wait(target, work, arguments, keywords): calls Work.wait, and records it for a known collective.
PyObject* collectives_wait(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  if (count != 4 || !PyTuple_CheckExact(given[2]) || !PyDict_CheckExact(given[3])) {
    PyErr_SetString(PyExc_TypeError, "wait(target, work, arguments, keywords)");
    return nullptr;
  }
  auto& all = state_of<Collectives>(self);
  const Py_ssize_t size = PyTuple_GET_SIZE(given[2]);
  const Ref args(PyTuple_New(size + 1));
  if (!args) return nullptr;
  PyTuple_SET_ITEM(args.get(), 0, new_reference(given[1]));
  for (Py_ssize_t i = 0; i < size; ++i)
    PyTuple_SET_ITEM(args.get(), i + 1, new_reference(PyTuple_GET_ITEM(given[2], i)));
  std::string says;
  if (!t_inside && all.enter) {
    const Ref reference(PyWeakref_NewRef(given[1], nullptr));
    PyErr_Clear();
    const CriticalSection section(self);
    const auto found = all.pending.find(reference.get());
    if (found != all.pending.end()) says = found->second.says;
  }
  if (says.empty()) return call(given[0], args.get(), given[3]);
  Event event(find_node(all, all.wait, g_wait_name));
  PyObject* result = call(given[0], args.get(), given[3]);
  const SavedError saved;
  event.end(says);
  return result;
}

PyMemberDef g_group_members[] = {
    {"facts", T_OBJECT_EX, DFT_OFFSET(Group, facts), READONLY, nullptr},
    {"count", T_LONGLONG, DFT_OFFSET(Group, count), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMethodDef g_group_methods[] = {
    {"complete", group_complete, METH_VARARGS, "Record the next collective with times of its own."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_group_slots[] = {{Py_tp_new, as_slot(group_new)},
                               {Py_tp_dealloc, as_slot(deallocate<Group>)},
                               {Py_tp_members, g_group_members},
                               {Py_tp_methods, g_group_methods},
                               {0, nullptr}};
PyType_Spec g_group_spec = {"dftracer._core.Group", sizeof(Object<Group>), 0, Py_TPFLAGS_DEFAULT,
                            g_group_slots};

PyMethodDef g_collectives_methods[] = {
    {"find", collectives_find, METH_O, "The Group of a process group."},
    {"wait", as_method(collectives_wait), METH_FASTCALL, "Wait for what was started."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_collectives_slots[] = {{Py_tp_new, as_slot(collectives_new)},
                                     {Py_tp_dealloc, as_slot(deallocate<Collectives>)},
                                     {Py_tp_traverse, as_slot(traverse<Collectives>)},
                                     {Py_tp_clear, as_slot(clear<Collectives>)},
                                     {Py_tp_methods, g_collectives_methods},
                                     {0, nullptr}};
PyType_Spec g_collectives_spec = {"dftracer._core.Collectives", sizeof(Object<Collectives>), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_collectives_slots};

PyMethodDef g_collective_methods[] = {
    {"call", as_method(collective_call), METH_FASTCALL, "Call the function and record that."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_collective_slots[] = {{Py_tp_new, as_slot(collective_new)},
                                    {Py_tp_dealloc, as_slot(deallocate<Collective>)},
                                    {Py_tp_traverse, as_slot(traverse<Collective>)},
                                    {Py_tp_methods, g_collective_methods},
                                    {0, nullptr}};
PyType_Spec g_collective_spec = {"dftracer._core.Collective", sizeof(Object<Collective>), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, g_collective_slots};

bool make_names() {
  const std::pair<PyObject**, const char*> names[] = {
      {&g_function_key, "function"}, {&g_seq_key, "seq"},
      {&g_async_key, "async"},       {&g_bytes_key, "bytes"},
      {&g_group_name, "group"},      {&g_world_name, "_world"},
      {&g_nodes_name, "nodes"},      {&g_default_group_name, "_default_pg"},
      {&g_comm_name, "comm"},        {&g_wait_name, "wait"},
      {&g_nbytes_name, "nbytes"}};
  for (const auto& [name, text] : names) {
    *name = intern(text).release();
    if (*name == nullptr) return false;
  }
  return true;
}

}  // namespace

bool add_collective_types(PyObject* module) {
  if (g_group_type == nullptr) {
    if (!make_names()) return false;
    g_group_type = make_type(g_group_spec);
    g_collectives_type = make_type(g_collectives_spec);
    g_collective_type = make_type(g_collective_spec);
  }
  return g_group_type != nullptr && g_collectives_type != nullptr && g_collective_type != nullptr &&
         add_type(module, "Group", g_group_type) &&
         add_type(module, "Collectives", g_collectives_type) &&
         add_type(module, "Collective", g_collective_type);
}

}  // namespace dft::python
