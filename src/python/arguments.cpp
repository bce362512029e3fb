// The arguments of a node's events: who may set them, for whom they hold, and what an event
// carries.
#include <atomic>
#include <cstring>
#include <new>

#include "python/thread_state.hpp"
#include "python/types.hpp"
#include "record/event.hpp"

namespace dft::python {
namespace {

// Counts every change of an argument, in any node: the version of all trees.
std::atomic<std::uint64_t> g_version{1};
constexpr std::uint64_t kPinned = ~std::uint64_t{0};

// epoch, step, image_idx, image_size and args may stand in this order without their names.
constexpr Py_ssize_t kPositional = 5;
PyObject* g_positional[kPositional];
PyObject* g_args = nullptr;   // "args"
PyObject* g_local = nullptr;  // context variable: the Local of a thread or a task
PyObject* g_owner = nullptr;  // the context whose updates hold for the whole process
std::atomic<bool> g_has_locals{false};
PyTypeObject* g_local_type = nullptr;

// What a thread or a task set for itself. Immutable, because those that it starts share it.
struct LocalEntry {
  Node* node;
  Entry entry;
};
struct Local {
  PyObject_HEAD;
  std::vector<LocalEntry> entries;
};

Local* local_of(PyObject* object) { return reinterpret_cast<Local*>(object); }

PyObject* new_local(const Local* from) {
  PyObject* object = g_local_type->tp_alloc(g_local_type, 0);
  if (object == nullptr) return nullptr;
  auto& entries = local_of(object)->entries;
  new (&entries) std::vector<LocalEntry>();
  if (from != nullptr) entries = from->entries;
  for (LocalEntry& item : entries) {
    Py_INCREF(item.node);
    Py_INCREF(item.entry.key);
  }
  return object;
}

void local_dealloc(PyObject* self) {
  auto& entries = local_of(self)->entries;
  for (LocalEntry& item : entries) {
    Py_DECREF(item.node);
    Py_DECREF(item.entry.key);
  }
  using Entries = std::vector<LocalEntry>;
  entries.~Entries();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// A strong reference, or nullptr.
PyObject* current_local() {
  PyObject* found = nullptr;
  if (PyContextVar_Get(g_local, nullptr, &found) != 0) PyErr_Clear();
  return found;
}

// The first context that updates speaks for the whole process, until it is gone: its values are
// seen by every thread and every task that has not set its own. All others speak for themselves.
bool speaks_for_all() {
  PyObject* now = context_now();
  if (now != nullptr && now == g_owner) return true;
  if (g_owner != nullptr && Py_REFCNT(g_owner) > 1) return false;
  // Who has spoken for itself goes on so: what it said would hide what it says for all.
  if (g_has_locals.load(std::memory_order_relaxed)) {
    PyObject* local = current_local();
    Py_XDECREF(local);
    if (local != nullptr && local != Py_None) return false;
  }
  if (now == nullptr) {
    // A thread has no context until it sets something.
    PyObject* token = PyContextVar_Set(g_local, Py_None);
    Py_XDECREF(token);
    PyErr_Clear();
    now = context_now();
    if (now == nullptr) return true;
  }
  Py_INCREF(now);
  Py_XSETREF(g_owner, now);
  return true;
}

Entry& entry_for(std::vector<Entry>& entries, PyObject* key) {
  for (Entry& entry : entries) {
    if (entry.key == key) return entry;
  }
  Py_INCREF(key);
  entries.push_back({key, 0, {}});
  return entries.back();
}

void set_here(Node& node, PyObject* key, PyObject* value) {
  std::string bytes;
  if (!PyLong_CheckExact(value)) append_argument(bytes, key, value);  // may run code, so not below
  TreeLock lock;
  Entry& entry = entry_for(node.own, key);
  if (!bytes.empty()) {
    entry.bytes = std::move(bytes);
  } else if (!replace_int(entry.bytes, value)) {
    entry.bytes.clear();
    append_argument(entry.bytes, key, value);
  }
  const std::uint64_t version = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
  entry.seq = node.pinned ? kPinned : version;
}

void set_locally(Local& local, Node& node, PyObject* key, PyObject* value) {
  std::string bytes;
  append_argument(bytes, key, value);
  LocalEntry* found = nullptr;
  for (LocalEntry& item : local.entries) {
    if (item.node == &node && item.entry.key == key) found = &item;
  }
  if (found == nullptr) {
    Py_INCREF(&node);
    Py_INCREF(key);
    local.entries.push_back({&node, {key, 0, {}}});
    found = &local.entries.back();
  }
  found->entry.bytes = std::move(bytes);
  found->entry.seq = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
}

// A new reference to the one object that stands for all equal keys, which makes comparing cheap.
PyObject* interned_key(PyObject* key) {
  PyObject* text = nullptr;
  if (PyUnicode_CheckExact(key)) {
    Py_INCREF(key);
    if (PyUnicode_CHECK_INTERNED(key) != 0) return key;
    text = key;
  } else if (PyUnicode_Check(key)) {
    text = PyUnicode_FromObject(key);
  } else if (PyLong_CheckExact(key)) {
    text = PyLong_Type.tp_repr(key);
  } else {
    text = PyUnicode_FromString(Py_TYPE(key)->tp_name);
  }
  if (text == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  PyUnicode_InternInPlace(&text);
  return text;
}

// Calls `set(key, value)` for each entry of a dict.
template <class Set>
void each_entry(PyObject* dict, const Set& set) {
  PyObject* name = nullptr;
  PyObject* item = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &name, &item) != 0) {
    PyObject* key = interned_key(name);
    if (key == nullptr) continue;
    Py_INCREF(item);  // asking a foreign scalar may run code that changes the dict
    set(key, item);
    Py_DECREF(item);
    Py_DECREF(key);
  }
}

// The same for each value that has a key, and for each entry of the one that is called args.
template <class Set>
void each_argument(PyObject* const* values, Py_ssize_t positional, PyObject* keywords,
                   const Set& set) {
  const Py_ssize_t count = positional + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (values[i] == Py_None) continue;  // not given
    PyObject* key =
        interned_key(i < positional ? g_positional[i] : PyTuple_GET_ITEM(keywords, i - positional));
    if (key == nullptr) continue;
    if (key != g_args) {
      set(key, values[i]);
    } else if (PyDict_Check(values[i])) {
      each_entry(values[i], set);
    } else if (PyMapping_Check(values[i]) != 0) {
      PyObject* dict = PyDict_New();
      if (dict != nullptr && PyDict_Update(dict, values[i]) == 0) each_entry(dict, set);
      PyErr_Clear();
      Py_XDECREF(dict);
    }
    Py_DECREF(key);
  }
}

// The same entries as `entries`, those that count only: one of a key, the latest.
void merge(std::vector<const Entry*>& chosen, const Entry& entry) {
  for (const Entry*& other : chosen) {
    if (other->key != entry.key) continue;
    if (entry.seq > other->seq) other = &entry;
    return;
  }
  chosen.push_back(&entry);
}

void resolve(Node& node, Local* local) {
  TreeLock lock;
  std::vector<const Entry*>& global = per_thread().global;
  std::vector<const Entry*>& own = per_thread().own;
  global.clear();
  own.clear();
  for (const Node* at = &node; at != nullptr; at = at->parent) {
    for (const Entry& entry : at->own) merge(global, entry);
    if (local == nullptr) continue;
    for (const LocalEntry& item : local->entries) {
      if (item.node == at) merge(own, item.entry);
    }
  }
  node.resolved.clear();
  for (const Entry* entry : global) {
    bool covered = false;
    for (const Entry* other : own) covered |= other->key == entry->key && entry->seq != kPinned;
    if (!covered) node.resolved += entry->bytes;
  }
  for (const Entry* entry : own) {
    bool covered = false;
    for (const Entry* other : global) covered |= other->key == entry->key && other->seq == kPinned;
    if (!covered) node.resolved += entry->bytes;
  }
}

PyType_Slot g_local_slots[] = {{Py_tp_dealloc, as_slot(local_dealloc)}, {0, nullptr}};
PyType_Spec g_local_spec = {"dftracer._core._Local", sizeof(Local), 0, Py_TPFLAGS_DEFAULT,
                            g_local_slots};

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
    // Nothing is said, so nobody speaks.
  } else if (node.pinned || speaks_for_all()) {
    each_argument(args, count, keywords,
                  [&](PyObject* key, PyObject* value) { set_here(node, key, value); });
  } else {
    PyObject* before = current_local();
    const bool usable = before != nullptr && before != Py_None;
    PyObject* local = new_local(usable ? local_of(before) : nullptr);
    Py_XDECREF(before);
    if (local == nullptr) return nullptr;
    each_argument(args, count, keywords, [&](PyObject* key, PyObject* value) {
      set_locally(*local_of(local), node, key, value);
    });
    PyObject* token = PyContextVar_Set(g_local, local);
    Py_DECREF(local);
    Py_XDECREF(token);
    PyErr_Clear();
    g_has_locals.store(true, std::memory_order_relaxed);
  }
  Py_INCREF(self);
  return self;
}

// [(key, encoded without its key)]: what a process that is started afresh can take over.
PyObject* node_export(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  PyObject* list = PyList_New(0);
  if (list == nullptr) return nullptr;
  for (const Entry& entry : node.own) {
    const std::size_t size = entry.bytes.size();
    PyObject* item =
        Py_BuildValue("(Oy#)", entry.key, entry.bytes.data(), static_cast<Py_ssize_t>(size));
    if (item == nullptr || PyList_Append(list, item) != 0) {
      Py_XDECREF(item);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(item);
  }
  return list;
}

PyObject* node_adopt(PyObject* self, PyObject* args) {
  PyObject* key = nullptr;
  const char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "Uy#:_adopt", &key, &bytes, &size)) return nullptr;
  Node& node = *node_of(self);
  // The key's number is this process's own; a key that stood in the record is left as it is.
  std::string encoded(bytes, static_cast<std::size_t>(size));
  std::string own;
  append_int(own, key, 0);
  if (encoded.size() < 16 || own.size() != 16) Py_RETURN_NONE;
  encoded.replace(0, 4, own, 0, 4);
  Py_INCREF(key);
  PyUnicode_InternInPlace(&key);
  Entry& entry = entry_for(node.own, key);
  Py_DECREF(key);
  entry.bytes = std::move(encoded);
  entry.seq = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
  Py_RETURN_NONE;
}

// _forget(key): as if it had never been given, as far as everybody sees it.
PyObject* node_forget(PyObject* self, PyObject* name) {
  PyObject* key = interned_key(name);
  if (key == nullptr) Py_RETURN_NONE;
  {
    TreeLock lock;
    std::vector<Entry>& own = node_of(self)->own;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].key != key) continue;
      Py_DECREF(own[i].key);
      own.erase(own.begin() + static_cast<std::ptrdiff_t>(i));
      g_version.fetch_add(1, std::memory_order_relaxed);
      break;
    }
  }
  Py_DECREF(key);
  Py_RETURN_NONE;
}

namespace {

// Sets the numbers and strings among encoded arguments in a dict; keys by their ids.
void decode(std::string_view bytes, PyObject* keys, PyObject* into) {
  using record::Arg;
  using record::ArgType;
  while (bytes.size() >= sizeof(Arg)) {
    Arg arg;
    std::memcpy(&arg, bytes.data(), sizeof arg);
    bytes.remove_prefix(sizeof arg);
    const std::size_t length = record::has_bytes(arg.type) ? arg.word : 0;
    if (record::padded(length) > bytes.size()) return;
    PyObject* value = nullptr;
    double number = 0;
    std::memcpy(&number, &arg.word, sizeof number);
    switch (arg.type) {
      case ArgType::kInt:
        value = PyLong_FromLongLong(static_cast<long long>(arg.word));
        break;
      case ArgType::kUint:
        value = PyLong_FromUnsignedLongLong(arg.word);
        break;
      case ArgType::kBool:
        value = PyBool_FromLong(arg.word != 0 ? 1 : 0);
        break;
      case ArgType::kFloat:
        value = PyFloat_FromDouble(number);
        break;
      case ArgType::kString:
      case ArgType::kJson:
        value = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(length), "replace");
        break;
      default:
        break;
    }
    bytes.remove_prefix(record::padded(length));
    PyObject* id = PyLong_FromUnsignedLong(arg.key);
    PyObject* key = id != nullptr ? PyDict_GetItemWithError(keys, id) : nullptr;
    if (key != nullptr && value != nullptr) PyDict_SetItem(into, key, value);
    PyErr_Clear();
    Py_XDECREF(id);
    Py_XDECREF(value);
  }
}

void learn_key(PyObject* keys, PyObject* key) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(key, &size);
  PyObject* id =
      text != nullptr
          ? PyLong_FromUnsignedLong(dftracer_intern(text, static_cast<std::size_t>(size)))
          : nullptr;
  if (id != nullptr) PyDict_SetItem(keys, id, key);
  PyErr_Clear();
  Py_XDECREF(id);
}

}  // namespace

// {key: value}: what the next event carries, and what the latest call said in its parameters.
PyObject* node_values(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  PyObject* keys = PyDict_New();
  PyObject* found = PyDict_New();
  if (keys != nullptr && found != nullptr) {
    for (Py_ssize_t i = 0; i < kPositional - 1; ++i) learn_key(keys, g_positional[i]);
    for (const Node* at = &node; at != nullptr; at = at->parent) {
      for (const Entry& entry : at->own) learn_key(keys, entry.key);
    }
    const std::string now(arguments_of(node));
    decode(now, keys, found);
    const std::string captured = node.captured;
    decode(captured, keys, found);
  }
  Py_XDECREF(keys);
  return found;
}

std::string_view arguments_of(Node& node) {
  const std::uint64_t version = g_version.load(std::memory_order_relaxed);
  if (!g_has_locals.load(std::memory_order_relaxed)) [[likely]] {
    if (node.resolved_version != version || node.resolved_context != nullptr) [[unlikely]] {
      resolve(node, nullptr);
      node.resolved_version = version;
      node.resolved_context = nullptr;
    }
    return node.resolved;
  }
  KeepError keep;
  PyObject* local = current_local();
  if (local == Py_None) Py_CLEAR(local);
  // A Local never changes, and a new one makes a new version, so its address identifies it.
  if (node.resolved_version != version || node.resolved_context != local) {
    resolve(node, local != nullptr ? local_of(local) : nullptr);
    node.resolved_version = version;
    node.resolved_context = local;
  }
  Py_XDECREF(local);
  return node.resolved;
}

bool prepare_arguments() {
  const char* const names[kPositional] = {"epoch", "step", "image_idx", "image_size", "args"};
  for (Py_ssize_t i = 0; i < kPositional; ++i) {
    g_positional[i] = PyUnicode_InternFromString(names[i]);
    if (g_positional[i] == nullptr) return false;
  }
  g_args = g_positional[kPositional - 1];
  g_local = PyContextVar_New("dftracer", nullptr);
  g_local_type = make_inner_type(g_local_spec);
  return g_local != nullptr && g_local_type != nullptr;
}

}  // namespace dft::python
