#include "bind/python_node.hpp"

#include <atomic>
#include <new>

#include "bind/python_types.hpp"

namespace dft::python {

PyTypeObject* g_node_type = nullptr;
PyObject* g_count = nullptr;

namespace {

// Counts every change of an argument, in any node: the version of all trees.
std::atomic<std::uint64_t> g_version{1};
constexpr std::uint64_t kPinned = ~std::uint64_t{0};

PyObject* g_args = nullptr;   // "args"
PyObject* g_local = nullptr;  // context variable: the Local of a thread or a task
PyObject* g_owner = nullptr;  // the context whose updates hold for the whole process
std::atomic<bool> g_has_locals{false};
PyTypeObject* g_local_type = nullptr;

// A region that `with` or start() began.
struct Open {
  dftracer_region region;
  Node* node;  // strong while open
  PyObject* context;
  const void* thread;
  std::uint64_t start;
  Open* below;
};

// What a thread keeps for itself, behind one pointer: a thread-local with a constructor would be
// asked at every use whether it has run.
struct PerThread {
  Open* top = nullptr;  // of `with`
  Open* spare = nullptr;
  std::string scratch;
  std::vector<const Entry*> global;
  std::vector<const Entry*> own;

  ~PerThread() {
    for (Open* list : {top, spare}) {
      while (list != nullptr) {
        Open* next = list->below;
        delete list;
        list = next;
      }
    }
  }
  Open* take() {
    Open* open = spare;
    if (open == nullptr) return new Open;
    spare = open->below;
    return open;
  }
  void give_back(Open* open) {
    open->below = spare;
    spare = open;
  }
};
constinit thread_local PerThread* t_per __attribute__((tls_model("initial-exec"))) = nullptr;

[[gnu::noinline, gnu::cold]] PerThread& make_per_thread() {
  struct Owner {
    ~Owner() {
      delete t_per;
      t_per = nullptr;
    }
  };
  thread_local Owner owner;
  (void)owner;
  t_per = new PerThread;
  return *t_per;
}
inline PerThread& per_thread() {
  PerThread* mine = t_per;
  return mine != nullptr ? *mine : make_per_thread();
}

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

// The running context: each task has its own, and each thread.
PyObject* context_now() { return PyThreadState_Get()->context; }

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
  Entry& entry = entry_for(node.own, key);
  if (!replace_int(entry.bytes, value)) {
    entry.bytes.clear();
    append_argument(entry.bytes, key, value);
  }
  const std::uint64_t version = g_version.fetch_add(1, std::memory_order_relaxed) + 1;
  entry.seq = node.pinned ? kPinned : version;
}

void set_locally(Local& local, Node& node, PyObject* key, PyObject* value) {
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
  found->entry.bytes.clear();
  append_argument(found->entry.bytes, key, value);
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

// Calls `set(key, value)` for each keyword, and for each entry of the one called args.
template <class Set>
void each_argument(PyObject* const* values, PyObject* keywords, const Set& set) {
  const auto set_one = [&](PyObject* name, PyObject* value) {
    PyObject* key = interned_key(name);
    if (key == nullptr) return;
    set(key, value);
    Py_DECREF(key);
  };
  const Py_ssize_t count = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = interned_key(PyTuple_GET_ITEM(keywords, i));
    if (key == nullptr) continue;
    if (values[i] == Py_None) {
      // Not given.
    } else if (key != g_args) {
      set(key, values[i]);
    } else if (PyDict_Check(values[i])) {
      PyObject* name = nullptr;
      PyObject* item = nullptr;
      Py_ssize_t at = 0;
      while (PyDict_Next(values[i], &at, &name, &item) != 0) set_one(name, item);
    } else if (PyMapping_Check(values[i]) != 0) {
      PyObject* dict = PyDict_New();
      if (dict != nullptr && PyDict_Update(dict, values[i]) == 0) {
        PyObject* name = nullptr;
        PyObject* item = nullptr;
        Py_ssize_t at = 0;
        while (PyDict_Next(dict, &at, &name, &item) != 0) set_one(name, item);
      }
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

// ---- Regions of `with` and of start() ----

// Regions that start() began and no stop() has ended, of all threads: newest first.
Open* g_started = nullptr;

bool is_enabled(const Node& node) { return node.enabled; }

PyObject* node_enter(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  PerThread& stack = per_thread();
  const bool on = is_enabled(node);
  // Switched off, it is only noted where an outer one might be taken for it.
  if (on || stack.top != nullptr) {
    Open* open = stack.take();
    if (open != nullptr) {
      open->node = &node;
      Py_INCREF(self);
      open->context = context_now();
      open->below = stack.top;
      stack.top = open;
      if (on) {
        dftracer_open(&open->region, &node.names);
      } else {
        open->region.opaque[0] = 0;
      }
    }
  }
  Py_INCREF(self);
  return self;
}

// The innermost entry of this node that this task made; failing that, one that nobody else claims.
Open** find_entry(PerThread& stack, const Node& node) {
  PyObject* context = context_now();
  Open** other = nullptr;
  for (Open** link = &stack.top; *link != nullptr; link = &(*link)->below) {
    if ((*link)->node != &node) continue;
    if ((*link)->context == context) return link;
    if (other == nullptr || ((*other)->context != nullptr && (*link)->context == nullptr))
      other = link;
  }
  return other;
}

PyObject* node_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  Node& node = *node_of(self);
  PerThread& stack = per_thread();
  Open* open = stack.top;
  if (open != nullptr) {
    if (open->node == &node && open->context == context_now()) [[likely]] {
      stack.top = open->below;
    } else if (Open** link = find_entry(stack, node)) {
      open = *link;
      *link = open->below;
    } else {
      Py_RETURN_NONE;
    }
    close_region(open->region, node);
    stack.give_back(open);
    Py_DECREF(self);
  }
  Py_RETURN_NONE;
}

void put_time(Node& node, const char* suffix) {
  const std::string key = node.name_text + suffix;
  const std::string value = std::to_string(dftracer_time());
  if (dftracer_active() != 0)
    dftracer_metadata_with(key.data(), key.size(), value.data(), value.size());
}

bool metadata_wanted(PyObject* args, PyObject* keywords, const char* format, bool& wanted) {
  static const char* const kNames[] = {"metadata", nullptr};
  int metadata = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, format, const_cast<char**>(kNames), &metadata))
    return false;
  wanted = metadata != 0;
  return true;
}

PyObject* node_start(PyObject* self, PyObject* args, PyObject* keywords) {
  bool metadata = false;
  if (!metadata_wanted(args, keywords, "|p:start", metadata)) return nullptr;
  Node& node = *node_of(self);
  if (is_enabled(node)) {
    if (metadata) {
      put_time(node, ".start");
    } else if (auto* open = new (std::nothrow) Open) {
      open->node = &node;
      Py_INCREF(self);
      open->context = context_now();
      open->thread = &per_thread();
      open->start = dftracer_ticks();
      open->below = g_started;
      g_started = open;
      dftracer_open(&open->region, &node.names);
    }
  }
  Py_RETURN_NONE;
}

// Of this thread and task if there is one, else of this thread, else of any.
Open** find_started(const Node& node) {
  PyObject* context = context_now();
  Open** found = nullptr;
  int best = -1;
  for (Open** link = &g_started; *link != nullptr; link = &(*link)->below) {
    if ((*link)->node != &node) continue;
    const bool here = (*link)->thread == &per_thread();
    const int rank = here ? ((*link)->context == context ? 2 : 1) : 0;
    if (rank > best) {
      best = rank;
      found = link;
    }
  }
  return found;
}

PyObject* node_stop(PyObject* self, PyObject* args, PyObject* keywords) {
  bool metadata = false;
  if (!metadata_wanted(args, keywords, "|p:stop", metadata)) return nullptr;
  Node& node = *node_of(self);
  if (metadata) {
    if (is_enabled(node)) put_time(node, ".end");
    Py_RETURN_NONE;
  }
  if (Open** link = find_started(node)) {
    Open* open = *link;
    *link = open->below;
    close_region(open->region, node);
    delete open;
    Py_DECREF(self);
  }
  Py_RETURN_NONE;
}

PyObject* node_reset(PyObject* self, PyObject*) {
  dftracer_mark_open(&node_of(self)->clock);
  Py_RETURN_NONE;
}

PyObject* node_flush(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  const Ending ending{&node.clock, dftracer_ticks(), &node.names};
  if (is_enabled(node)) close_marks(node, {}, &ending, 1);
  dftracer_mark_open(&node.clock);
  Py_RETURN_NONE;
}

// ---- Arguments ----

PyObject* node_update(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count != 0) {
    PyErr_SetString(PyExc_TypeError, "update() takes keywords: epoch, step, ..., args={...}");
    return nullptr;
  }
  Node& node = *node_of(self);
  if (node.pinned || speaks_for_all()) {
    each_argument(args, keywords,
                  [&](PyObject* key, PyObject* value) { set_here(node, key, value); });
  } else {
    PyObject* before = current_local();
    const bool usable = before != nullptr && before != Py_None;
    PyObject* local = new_local(usable ? local_of(before) : nullptr);
    Py_XDECREF(before);
    if (local == nullptr) return nullptr;
    each_argument(args, keywords, [&](PyObject* key, PyObject* value) {
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
  std::vector<Entry>& own = node_of(self)->own;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].key != key) continue;
    Py_DECREF(own[i].key);
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(i));
    g_version.fetch_add(1, std::memory_order_relaxed);
    break;
  }
  Py_DECREF(key);
  Py_RETURN_NONE;
}

// ---- The type ----

PyObject* node_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  (void)args;
  (void)keywords;
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Node& node = *node_of(self);
  new (&node.name_text) std::string("unnamed");
  new (&node.category_text) std::string("APP");
  new (&node.own) std::vector<Entry>();
  new (&node.resolved) std::string();
  node.names = {0, node.name_text.data(), node.name_text.size(), node.category_text.data(),
                node.category_text.size()};
  node.enabled = true;
  return self;
}

// _define(category, name, parent=None, pinned=False)
PyObject* node_define(PyObject* self, PyObject* args) {
  PyObject* category = nullptr;
  PyObject* name = nullptr;
  PyObject* parent = Py_None;
  int pinned = 0;
  if (!PyArg_ParseTuple(args, "OO|Op:_define", &category, &name, &parent, &pinned)) return nullptr;
  if (parent != Py_None && !is_node(parent)) {
    PyErr_SetString(PyExc_TypeError, "_define(): the parent is not a node");
    return nullptr;
  }
  Node& node = *node_of(self);
  PyObject* held = nullptr;
  node.name_text = text_of(name, held);
  Py_XDECREF(held);
  node.category_text = text_of(category, held);
  Py_XDECREF(held);
  node.names = {0, node.name_text.data(), node.name_text.size(), node.category_text.data(),
                node.category_text.size()};
  Py_INCREF(name);
  Py_XSETREF(node.name, name);
  Py_INCREF(category);
  Py_XSETREF(node.category, category);
  if (parent != Py_None) {
    Py_INCREF(parent);
    Node* before = node.parent;
    node.parent = node_of(parent);
    Py_XDECREF(before);
  }
  node.pinned = pinned != 0;
  Py_RETURN_NONE;
}

int node_clear(PyObject* self) {
  Node& node = *node_of(self);
  Py_CLEAR(node.name);
  Py_CLEAR(node.category);
  Py_CLEAR(node.parent);
  Py_CLEAR(node.enter);
  Py_CLEAR(node.exit);
  for (Entry& entry : node.own) Py_CLEAR(entry.key);
  node.own.clear();
  return 0;
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(node_of(self)->parent);
  Py_VISIT(node_of(self)->enter);
  Py_VISIT(node_of(self)->exit);
  return 0;
}

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  node_clear(self);
  Node& node = *node_of(self);
  using std::string;
  using Entries = std::vector<Entry>;
  node.name_text.~string();
  node.category_text.~string();
  node.own.~Entries();
  node.resolved.~string();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* object_or_none(PyObject* object) {
  if (object == nullptr) object = Py_None;
  Py_INCREF(object);
  return object;
}

PyObject* node_name(PyObject* self, void*) { return object_or_none(node_of(self)->name); }
PyObject* node_category(PyObject* self, void*) { return object_or_none(node_of(self)->category); }
PyObject* node_get_enabled(PyObject* self, void*) {
  return PyBool_FromLong(node_of(self)->enabled ? 1 : 0);
}
int node_set_enabled(PyObject* self, PyObject* value, void*) {
  const int truth = value != nullptr ? PyObject_IsTrue(value) : 0;
  if (truth < 0) return -1;
  node_of(self)->enabled = truth != 0;
  return 0;
}

// Python binds these two to the node at every `with`; here that was done before.
PyMethodDef g_enter = {"__enter__", node_enter, METH_NOARGS, "Begin an event."};
PyMethodDef g_exit = {"__exit__", as_method(node_exit), METH_FASTCALL, "End it and record it."};

PyObject* bound(PyObject* self, PyObject*& kept, PyMethodDef& method) {
  if (kept == nullptr) kept = PyCFunction_New(&method, self);
  Py_XINCREF(kept);
  return kept;
}
PyObject* node_get_enter(PyObject* self, void*) {
  return bound(self, node_of(self)->enter, g_enter);
}
PyObject* node_get_exit(PyObject* self, void*) { return bound(self, node_of(self)->exit, g_exit); }

PyMethodDef g_node_methods[] = {
    {"start", as_method(node_start), METH_VARARGS | METH_KEYWORDS,
     "Begin an event that stop() ends; with metadata=True, record the time at once."},
    {"stop", as_method(node_stop), METH_VARARGS | METH_KEYWORDS, "End what start() began."},
    {"update", as_method(node_update), METH_FASTCALL | METH_KEYWORDS,
     "Set arguments of all later events of this node and of those below it."},
    {"reset", node_reset, METH_NOARGS, "Restart the clock of flush()."},
    {"flush", node_flush, METH_NOARGS, "Record an event from the last reset() or flush() to now."},
    {"_define", node_define, METH_VARARGS, nullptr},
    {"_export", node_export, METH_NOARGS, nullptr},
    {"_adopt", node_adopt, METH_VARARGS, nullptr},
    {"_forget", node_forget, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef g_node_getset[] = {
    {"__enter__", node_get_enter, nullptr, nullptr, nullptr},
    {"__exit__", node_get_exit, nullptr, nullptr, nullptr},
    {"name", node_name, nullptr, "What events are called.", nullptr},
    {"cat", node_category, nullptr, "Their category.", nullptr},
    {"enabled", node_get_enabled, node_set_enabled, "Whether events are recorded.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot g_node_slots[] = {{Py_tp_new, as_slot(node_new)},
                              {Py_tp_dealloc, as_slot(node_dealloc)},
                              {Py_tp_traverse, as_slot(node_traverse)},
                              {Py_tp_clear, as_slot(node_clear)},
                              {Py_tp_methods, g_node_methods},
                              {Py_tp_getset, g_node_getset},
                              {0, nullptr}};
PyType_Spec g_node_spec = {"dftracer._core.Node", sizeof(Node), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           g_node_slots};

PyType_Slot g_local_slots[] = {{Py_tp_dealloc, as_slot(local_dealloc)}, {0, nullptr}};
PyType_Spec g_local_spec = {"dftracer._core._Local", sizeof(Local), 0, Py_TPFLAGS_DEFAULT,
                            g_local_slots};

}  // namespace

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

// Where threads run side by side, a node is resolved and written under its own critical section.
#ifdef Py_GIL_DISABLED
#define DFT_WITH_NODE(node) Py_BEGIN_CRITICAL_SECTION(reinterpret_cast<PyObject*>(&(node)))
#define DFT_END_NODE() Py_END_CRITICAL_SECTION()
#else
#define DFT_WITH_NODE(node) {
#define DFT_END_NODE() }
#endif

void close_region(dftracer_region& region, Node& node, std::string_view more) {
  if (region.opaque[0] == 0) return;
  DFT_WITH_NODE(node);
  const std::string_view args = arguments_of(node);
  if (more.empty()) [[likely]] {
    dftracer_close(&region, args.data(), args.size());
  } else {
    std::string& all = per_thread().scratch;
    all.assign(args);
    all.append(more);
    dftracer_close(&region, all.data(), all.size());
  }
  DFT_END_NODE();
}

void close_marks(Node& node, std::string_view more, const Ending* endings, int count) {
  DFT_WITH_NODE(node);
  std::string& all = per_thread().scratch;
  all.assign(arguments_of(node));
  all.append(more);
  for (const Ending* it = endings; it != endings + count; ++it)
    dftracer_mark_close(it->mark, it->end, it->names, all.data(), all.size());
  DFT_END_NODE();
}

void note_end_of_part(std::uint64_t start) {
  for (Open* open = g_started; open != nullptr; open = open->below) {
    if (open->thread == t_per && open->start > start && open->region.opaque[0] != 0)
      dftracer_cross(&open->region);
  }
}

void OwnNames::set(std::string_view name, const Node& node) {
  text_ = name;
  names_ = {0, text_.data(), text_.size(), node.category_text.data(), node.category_text.size()};
}

bool add_node_type(PyObject* module) {
  if (g_node_type == nullptr) {
    g_args = PyUnicode_InternFromString("args");
    g_count = PyUnicode_InternFromString("count");
    g_local = PyContextVar_New("dftracer", nullptr);
    g_local_type = make_type(g_local_spec);
    g_node_type = make_type(g_node_spec);
    if (g_args == nullptr || g_count == nullptr || g_local == nullptr || g_local_type == nullptr ||
        g_node_type == nullptr) {
      return false;
    }
  }
  return add_type(module, "Node", g_node_type);
}

}  // namespace dft::python
