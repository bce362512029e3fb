// The arguments of a node's events: who may set them, for which threads and tasks they hold, and
// what an event carries. update() and the copying to other processes are called by Python code;
// current_arguments is on the path of every event. Everything runs with the GIL, or under TreeLock.
#include <atomic>
#include <cstring>

#include "python/support/error.hpp"
#include "python/support/type.hpp"
#include "python/thread_state.hpp"
#include "record/event.hpp"

namespace dft::python {
namespace {

// Counts every change of an argument, in any node: the version of all trees.
std::atomic<std::uint64_t> g_version{1};
constexpr std::uint64_t kPinned = ~std::uint64_t{0};

// epoch, step, image_idx, image_size and args may be given in this order without their names.
constexpr Py_ssize_t kPositional = 5;
// These, as every global of this room, stay until the process ends: a destructor would run after
// the interpreter is gone.
PyObject* g_positional[kPositional];
PyObject* g_args_key = nullptr;        // "args"
PyObject* g_task_arguments = nullptr;  // context variable: the TaskArguments of a thread or a task
PyObject* g_process_context =
    nullptr;  // weak: the context whose updates hold for the whole process
std::atomic<bool> g_has_task_arguments{false};
PyTypeObject* g_task_arguments_type = nullptr;

// What a thread or a task set for itself. Immutable, because those that it starts share it.
struct TaskArguments {
  struct Entry {
    RefTo<Node> node;
    ArgumentEntry argument;
  };
  std::vector<Entry> entries;
};

// A copy of `from`, which may be null.
RefTo<TaskArguments> copy_task_arguments(const TaskArguments* from) {
  Ref object = create<TaskArguments>(g_task_arguments_type);
  if (!object) return {};
  TaskArguments& copy = state_of<TaskArguments>(object.release());
  if (from != nullptr) copy.entries = from->entries;
  return RefTo<TaskArguments>(&copy);
}

// Empty where this thread or task has set nothing for itself.
RefTo<TaskArguments> current_task_arguments() {
  PyObject* found = nullptr;
  if (PyContextVar_Get(g_task_arguments, nullptr, &found) != 0) PyErr_Clear();
  Ref value(found);
  if (!value || value.get() == Py_None) return {};
  return RefTo<TaskArguments>(&state_of<TaskArguments>(value.release()));
}

void set_task_arguments(PyObject* value) {
  const Ref token(PyContextVar_Set(g_task_arguments, value));
  PyErr_Clear();
}

// The first context that calls update() sets values for the whole process, until that context is
// gone: every thread and every task that has not set its own sees them. All others set values for
// themselves.
bool sets_for_process() {
  PyObject* now = current_context();
  if (g_process_context != nullptr) {
    if (const Ref owner = referent(g_process_context)) return owner.get() == now;
  }
  // A context that already set task-local values stays task-local; its old values would shadow new
  // process-wide ones.
  if (g_has_task_arguments.load(std::memory_order_relaxed) && current_task_arguments())
    return false;
  if (now == nullptr) {
    // A thread has no context until it sets a context variable.
    set_task_arguments(Py_None);
    now = current_context();
    if (now == nullptr) return true;
  }
  Ref weak(PyWeakref_NewRef(now, nullptr));
  if (!weak) PyErr_Clear();
  const Ref before(std::exchange(g_process_context, weak.release()));
  return true;
}

ArgumentEntry& entry_for(std::vector<ArgumentEntry>& entries, PyObject* key) {
  for (ArgumentEntry& entry : entries) {
    if (entry.key.get() == key) return entry;
  }
  entries.push_back({Ref::borrow(key), 0, {}});
  return entries.back();
}

void set_for_process(Node& node, PyObject* key, PyObject* value) {
  std::string bytes;
  if (!PyLong_CheckExact(value)) append_argument(bytes, key, value);  // may run code, so not below
  TreeLock lock;
  ArgumentEntry& entry = entry_for(node.arguments, key);
  if (!bytes.empty()) {
    entry.bytes = std::move(bytes);
  } else if (!replace_int(entry.bytes, value)) {
    entry.bytes.clear();
    append_argument(entry.bytes, key, value);
  }
  const std::uint64_t version = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
  entry.seq = node.pinned ? kPinned : version;
}

void set_for_task(TaskArguments& task, Node& node, PyObject* key, PyObject* value) {
  std::string bytes;
  append_argument(bytes, key, value);
  ArgumentEntry* found = nullptr;
  for (TaskArguments::Entry& entry : task.entries) {
    if (entry.node.get() == &node && entry.argument.key.get() == key) found = &entry.argument;
  }
  if (found == nullptr) {
    task.entries.push_back({RefTo<Node>::borrow(&node), {Ref::borrow(key), 0, {}}});
    found = &task.entries.back().argument;
  }
  found->bytes = std::move(bytes);
  found->seq = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The one object that stands for all equal keys, which makes comparing cheap; empty without one.
Ref interned_key(PyObject* key) {
  Ref text;
  if (PyUnicode_CheckExact(key)) {
    text = Ref::borrow(key);
    if (PyUnicode_CHECK_INTERNED(key) != 0) return text;
  } else if (PyUnicode_Check(key)) {
    text = Ref(PyUnicode_FromObject(key));
  } else if (PyLong_CheckExact(key)) {
    text = Ref(PyLong_Type.tp_repr(key));
  } else {
    text = Ref(PyUnicode_FromString(Py_TYPE(key)->tp_name));
  }
  if (!text) {
    PyErr_Clear();
    return {};
  }
  intern_in_place(text);
  return text;
}

// Calls `set(key, value)` for each entry of a dict.
template <class Set>
void each_entry(PyObject* dict, const Set& set) {
  PyObject* name = nullptr;
  PyObject* item = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &name, &item) != 0) {
    const Ref key = interned_key(name);
    if (!key) continue;
    // Converting a foreign scalar may run code that changes the dict.
    const Ref held = Ref::borrow(item);
    set(key.get(), item);
  }
}

// Calls it for each value that has a key, and for each entry of the one that is called args.
template <class Set>
void each_argument(PyObject* const* values, Py_ssize_t positional, PyObject* keywords,
                   const Set& set) {
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (values[i] == Py_None) continue;  // not given
    const Ref key =
        interned_key(i < positional ? g_positional[i] : PyTuple_GET_ITEM(keywords, i - positional));
    if (!key) continue;
    if (key.get() != g_args_key) {
      set(key.get(), values[i]);
    } else if (PyDict_Check(values[i])) {
      each_entry(values[i], set);
    } else if (PyMapping_Check(values[i]) != 0) {
      const Ref dict(PyDict_New());
      if (dict && PyDict_Update(dict.get(), values[i]) == 0) each_entry(dict.get(), set);
      PyErr_Clear();
    }
  }
}

using EntryList = std::vector<const ArgumentEntry*>;

// Keeps one entry per key, the latest.
void merge(EntryList& latest, const ArgumentEntry& entry) {
  for (const ArgumentEntry*& other : latest) {
    if (other->key.get() != entry.key.get()) continue;
    if (entry.seq > other->seq) other = &entry;
    return;
  }
  latest.push_back(&entry);
}

// Computes what events of the node carry. A task's own value replaces the process-wide one of its
// key, unless that is pinned.
void resolve(Node& node, const TaskArguments* task) {
  TreeLock lock;
  EntryList& process_wide = per_thread().process_wide;
  EntryList& task_local = per_thread().task_local;
  process_wide.clear();
  task_local.clear();
  for (const Node* at = &node; at != nullptr; at = at->parent.get()) {
    for (const ArgumentEntry& entry : at->arguments) merge(process_wide, entry);
    if (task == nullptr) continue;
    for (const TaskArguments::Entry& entry : task->entries) {
      if (entry.node.get() == at) merge(task_local, entry.argument);
    }
  }
  node.resolved.clear();
  for (const ArgumentEntry* entry : process_wide) {
    bool replaced = false;
    for (const ArgumentEntry* other : task_local)
      replaced |= other->key.get() == entry->key.get() && entry->seq != kPinned;
    if (!replaced) node.resolved += entry->bytes;
  }
  for (const ArgumentEntry* entry : task_local) {
    bool replaced = false;
    for (const ArgumentEntry* other : process_wide)
      replaced |= other->key.get() == entry->key.get() && other->seq == kPinned;
    if (!replaced) node.resolved += entry->bytes;
  }
}

PyType_Slot g_task_arguments_slots[] = {{Py_tp_dealloc, as_slot(deallocate<TaskArguments>)},
                                        {0, nullptr}};
PyType_Spec g_task_arguments_spec = {"dftracer._core._TaskArguments", sizeof(Object<TaskArguments>),
                                     0, Py_TPFLAGS_DEFAULT, g_task_arguments_slots};

}  // namespace

PyObject* node_update(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count > kPositional) {
    PyErr_SetString(PyExc_TypeError, "update() takes epoch, step, image_idx, image_size and args");
    return nullptr;
  }
  Node& node = *node_of(self);
  const Py_ssize_t all = count + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  bool given = false;
  for (Py_ssize_t i = 0; i < all; ++i) given |= args[i] != Py_None;
  if (!given) {
    // All arguments are None: do not claim ownership.
  } else if (node.pinned || sets_for_process()) {
    each_argument(args, count, keywords,
                  [&](PyObject* key, PyObject* value) { set_for_process(node, key, value); });
  } else {
    const RefTo<TaskArguments> task = copy_task_arguments(current_task_arguments().get());
    if (!task) return nullptr;
    each_argument(args, count, keywords,
                  [&](PyObject* key, PyObject* value) { set_for_task(*task, node, key, value); });
    set_task_arguments(object_of(task.get()));
    g_has_task_arguments.store(true, std::memory_order_relaxed);
  }
  return new_reference(self);
}

// [(key, encoded argument)], for _adopt() in a process that is started afresh.
PyObject* node_export(PyObject* self, PyObject*) {
  Ref list(PyList_New(0));
  if (!list) return nullptr;
  for (const ArgumentEntry& entry : node_of(self)->arguments) {
    const Ref item(Py_BuildValue("(Oy#)", entry.key.get(), entry.bytes.data(),
                                 static_cast<Py_ssize_t>(entry.bytes.size())));
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

PyObject* node_adopt(PyObject* self, PyObject* args) {
  PyObject* key = nullptr;
  const char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "Uy#:_adopt", &key, &bytes, &size)) return nullptr;
  Node& node = *node_of(self);
  // Ids of keys differ between processes; a key that stands in the record itself stays as it is.
  std::string encoded(bytes, static_cast<std::size_t>(size));
  std::string own;
  append_int(own, key, 0);
  if (encoded.size() < 16 || own.size() != 16) Py_RETURN_NONE;
  encoded.replace(0, 4, own, 0, 4);
  Ref interned = Ref::borrow(key);
  intern_in_place(interned);
  ArgumentEntry& entry = entry_for(node.arguments, interned.get());
  entry.bytes = std::move(encoded);
  entry.seq = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
  Py_RETURN_NONE;
}

// _forget(key): removes what was set for the whole process.
PyObject* node_forget(PyObject* self, PyObject* name) {
  const Ref key = interned_key(name);
  if (!key) Py_RETURN_NONE;
  TreeLock lock;
  const auto removed = std::erase_if(node_of(self)->arguments, [&](const ArgumentEntry& entry) {
    return entry.key.get() == key.get();
  });
  if (removed != 0) g_version.fetch_add(1, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

namespace {

// Puts the numbers and strings among encoded arguments into a dict. `keys` maps ids to keys.
void decode(std::string_view bytes, PyObject* keys, PyObject* into) {
  using record::Arg;
  using record::ArgType;
  while (bytes.size() >= sizeof(Arg)) {
    Arg arg;
    std::memcpy(&arg, bytes.data(), sizeof arg);
    bytes.remove_prefix(sizeof arg);
    const std::size_t length = record::has_bytes(arg.type) ? arg.word : 0;
    if (record::padded(length) > bytes.size()) return;
    Ref value;
    double number = 0;
    std::memcpy(&number, &arg.word, sizeof number);
    switch (arg.type) {
      case ArgType::kInt:
        value = Ref(PyLong_FromLongLong(static_cast<long long>(arg.word)));
        break;
      case ArgType::kUint:
        value = Ref(PyLong_FromUnsignedLongLong(arg.word));
        break;
      case ArgType::kBool:
        value = Ref(PyBool_FromLong(arg.word != 0 ? 1 : 0));
        break;
      case ArgType::kFloat:
        value = Ref(PyFloat_FromDouble(number));
        break;
      case ArgType::kString:
      case ArgType::kJson:
        value = Ref(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(length), "replace"));
        break;
      default:
        break;
    }
    bytes.remove_prefix(record::padded(length));
    const Ref id(PyLong_FromUnsignedLong(arg.key));
    PyObject* key = id ? PyDict_GetItemWithError(keys, id.get()) : nullptr;
    if (key != nullptr && value) PyDict_SetItem(into, key, value.get());
    PyErr_Clear();
  }
}

void add_key(PyObject* keys, PyObject* key) {
  Ref held;
  const std::string_view text = text_of(key, held);
  const Ref id(PyLong_FromUnsignedLong(dftracer_intern(text.data(), text.size())));
  if (id) PyDict_SetItem(keys, id.get(), key);
  PyErr_Clear();
}

}  // namespace

// {key: value}: what the next event carries, and what the latest call captured.
PyObject* node_values(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  const Ref keys(PyDict_New());
  Ref values(PyDict_New());
  if (!keys || !values) return nullptr;
  for (Py_ssize_t i = 0; i < kPositional - 1; ++i) add_key(keys.get(), g_positional[i]);
  for (const Node* at = &node; at != nullptr; at = at->parent.get()) {
    for (const ArgumentEntry& entry : at->arguments) add_key(keys.get(), entry.key.get());
  }
  const std::string now(current_arguments(node));
  decode(now, keys.get(), values.get());
  const std::string captured = node.captured;
  decode(captured, keys.get(), values.get());
  return values.release();
}

std::string_view current_arguments(Node& node) {
  const std::uint64_t version = g_version.load(std::memory_order_relaxed);
  if (!g_has_task_arguments.load(std::memory_order_relaxed)) [[likely]] {
    if (node.resolved_version != version || node.resolved_for != nullptr) [[unlikely]] {
      resolve(node, nullptr);
      node.resolved_version = version;
      node.resolved_for = nullptr;
    }
    return node.resolved;
  }
  SavedError saved;
  const RefTo<TaskArguments> task = current_task_arguments();
  // TaskArguments never change, and new ones make a new version, so the address identifies them.
  if (node.resolved_version != version || node.resolved_for != task.get()) {
    resolve(node, task.get());
    node.resolved_version = version;
    node.resolved_for = task.get();
  }
  return node.resolved;
}

bool prepare_arguments() {
  const char* const names[kPositional] = {"epoch", "step", "image_idx", "image_size", "args"};
  for (Py_ssize_t i = 0; i < kPositional; ++i) {
    g_positional[i] = intern(names[i]).release();
    if (g_positional[i] == nullptr) return false;
  }
  g_args_key = g_positional[kPositional - 1];
  g_task_arguments = PyContextVar_New("dftracer", nullptr);
  g_task_arguments_type = make_internal_type(g_task_arguments_spec);
  return g_task_arguments != nullptr && g_task_arguments_type != nullptr;
}

}  // namespace dft::python
