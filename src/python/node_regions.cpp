// Regions of a node: those of `with`, those that start() and stop() mark, and the clock of flush().
#include <mutex>
#include <new>

#include "python/thread_state.hpp"

namespace dft::python {

constinit thread_local PerThread* t_per __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

// All threads that have ever entered a node. A thread leaves the list without the GIL.
std::mutex g_threads_lock;
PerThread* g_threads = nullptr;

void leave_list(PerThread* mine) {
  const std::lock_guard<std::mutex> locked(g_threads_lock);
  PerThread** link = &g_threads;
  while (*link != nullptr && *link != mine) link = &(*link)->next;
  if (*link != nullptr) *link = mine->next;
}

}  // namespace

[[gnu::noinline, gnu::cold]] PerThread& make_per_thread() {
  struct Owner {
    ~Owner() {
      if (t_per != nullptr) leave_list(t_per);
      delete t_per;
      t_per = nullptr;
    }
  };
  thread_local Owner owner;
  (void)owner;
  t_per = new PerThread;
  const std::lock_guard<std::mutex> locked(g_threads_lock);
  t_per->next = g_threads;
  g_threads = t_per;
  return *t_per;
}

namespace {

// Regions that start() began and no stop() has ended, of all threads: newest first.
Open* g_started = nullptr;

bool is_enabled(const Node& node) { return node.enabled; }

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

// Taken off the list: of this thread and task if there is one, else of this thread, else of any.
Open* take_started(const Node& node) {
  TreeLock lock;
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
  if (found == nullptr) return nullptr;
  Open* open = *found;
  *found = open->below;
  return open;
}

}  // namespace

PyObject* node_enter(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  PerThread& stack = per_thread();
  const bool on = is_enabled(node);
  // Switched off, it is only noted where an outer one might be taken for it.
  if (on || stack.top != nullptr) {
    Open* open = stack.take();
    if (open != nullptr) {
      open->node = &node;
      ++node.entries;
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

// Entered on another thread, as a generator is that a server runs on whatever thread is free.
[[gnu::noinline, gnu::cold]] static Open* take_from_others(const Node& node) {
  const std::lock_guard<std::mutex> locked(g_threads_lock);
  for (PerThread* other = g_threads; other != nullptr; other = other->next) {
    if (other == t_per) continue;
    if (Open** link = find_entry(*other, node)) {
      Open* open = *link;
      *link = open->below;
      return open;
    }
  }
  return nullptr;
}

PyObject* node_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  Node& node = *node_of(self);
  PerThread& stack = per_thread();
  Open* open = stack.top;
  if (open != nullptr && open->node == &node && open->context == context_now()) [[likely]] {
    stack.top = open->below;
  } else if (Open** link = find_entry(stack, node)) {
    open = *link;
    *link = open->below;
  } else {
    open = node.entries != 0 ? take_from_others(node) : nullptr;
    if (open == nullptr) Py_RETURN_NONE;
  }
  --node.entries;
  close_region(open->region, node);
  stack.give_back(open);
  Py_DECREF(self);
  Py_RETURN_NONE;
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
      dftracer_open(&open->region, &node.names);
      TreeLock lock;
      open->below = g_started;
      g_started = open;
    }
  }
  Py_RETURN_NONE;
}

PyObject* node_stop(PyObject* self, PyObject* args, PyObject* keywords) {
  bool metadata = false;
  if (!metadata_wanted(args, keywords, "|p:stop", metadata)) return nullptr;
  Node& node = *node_of(self);
  if (metadata) {
    if (is_enabled(node)) put_time(node, ".end");
    Py_RETURN_NONE;
  }
  if (Open* open = take_started(node)) {
    close_region(open->region, node);
    delete open;
    Py_DECREF(self);
  }
  Py_RETURN_NONE;
}

PyObject* node_reset(PyObject* self, PyObject*) {
  dftracer_mark_open(&node_of(self)->clock);
  Py_INCREF(self);
  return self;
}

PyObject* node_flush(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  const Ending ending{&node.clock, dftracer_ticks(), &node.names};
  if (is_enabled(node)) close_marks(node, {}, &ending, 1);
  dftracer_mark_open(&node.clock);
  Py_INCREF(self);
  return self;
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
  if (region.opaque[0] == 0) [[unlikely]] {
    if (node.enabled) count_missed();
    return;
  }
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

}  // namespace dft::python
