// Regions of a node: those of `with`, those between start() and stop(), and the clock of flush().
// Python calls them on its own threads; node_enter, node_exit, close_region and close_marks are on
// the path of every event.
#include <mutex>
#include <new>

#include "python/support/critical_section.hpp"
#include "python/thread_state.hpp"

namespace dft::python {

constinit thread_local PerThread* t_per_thread __attribute__((tls_model("initial-exec"))) = nullptr;

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
  // Runs at the end of the thread.
  struct ThreadExit {
    ~ThreadExit() {
      if (t_per_thread != nullptr) leave_list(t_per_thread);
      delete t_per_thread;
      t_per_thread = nullptr;
    }
  };
  thread_local ThreadExit exit;
  (void)exit;
  t_per_thread = new PerThread;
  const std::lock_guard<std::mutex> locked(g_threads_lock);
  t_per_thread->next = g_threads;
  g_threads = t_per_thread;
  return *t_per_thread;
}

namespace {

// Regions that start() began and no stop() has ended, of all threads: newest first.
OpenRegion* g_started = nullptr;

// The innermost region of this node that this task entered; failing that, the innermost that was
// entered without a context, then of any task.
OpenRegion** find_entered(PerThread& stack, const Node& node) {
  PyObject* context = current_context();
  OpenRegion** other = nullptr;
  for (OpenRegion** link = &stack.top; *link != nullptr; link = &(*link)->below) {
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

// Takes one off the list: of this thread and task if there is one, else of this thread, else any.
OpenRegion* take_started(const Node& node) {
  TreeLock lock;
  PyObject* context = current_context();
  OpenRegion** found = nullptr;
  int best = -1;
  for (OpenRegion** link = &g_started; *link != nullptr; link = &(*link)->below) {
    if ((*link)->node != &node) continue;
    const bool here = (*link)->thread == &per_thread();
    const int rank = here ? ((*link)->context == context ? 2 : 1) : 0;
    if (rank > best) {
      best = rank;
      found = link;
    }
  }
  if (found == nullptr) return nullptr;
  OpenRegion* open = *found;
  *found = open->below;
  return open;
}

}  // namespace

// Counts references by hand, as does node_exit: each `with` runs through both.
PyObject* node_enter(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  PerThread& stack = per_thread();
  const bool on = node.enabled;
  // Switched off, it is kept only where node_exit might take an outer region for it.
  if (on || stack.top != nullptr) {
    OpenRegion* open = stack.take();
    if (open != nullptr) {
      open->node = &node;
      ++node.open_entries;
      Py_INCREF(self);
      open->context = current_context();
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

// Entered on another thread: a server may run a generator on any thread that is free.
[[gnu::noinline, gnu::cold]] static OpenRegion* take_from_others(const Node& node) {
  const std::lock_guard<std::mutex> locked(g_threads_lock);
  for (PerThread* other = g_threads; other != nullptr; other = other->next) {
    if (other == t_per_thread) continue;
    if (OpenRegion** link = find_entered(*other, node)) {
      OpenRegion* open = *link;
      *link = open->below;
      return open;
    }
  }
  return nullptr;
}

PyObject* node_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  Node& node = *node_of(self);
  PerThread& stack = per_thread();
  OpenRegion* open = stack.top;
  if (open != nullptr && open->node == &node && open->context == current_context()) [[likely]] {
    stack.top = open->below;
  } else if (OpenRegion** link = find_entered(stack, node)) {
    open = *link;
    *link = open->below;
  } else {
    open = node.open_entries != 0 ? take_from_others(node) : nullptr;
    if (open == nullptr) Py_RETURN_NONE;
  }
  --node.open_entries;
  close_region(open->region, node);
  stack.give_back(open);
  Py_DECREF(self);
  Py_RETURN_NONE;
}

PyObject* node_start(PyObject* self, PyObject* args, PyObject* keywords) {
  bool metadata = false;
  if (!metadata_wanted(args, keywords, "|p:start", metadata)) return nullptr;
  Node& node = *node_of(self);
  if (node.enabled) {
    if (metadata) {
      put_time(node, ".start");
    } else if (auto* open = new (std::nothrow) OpenRegion) {
      open->node = RefTo<Node>::borrow(&node).release();
      open->context = current_context();
      open->thread = &per_thread();
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
    if (node.enabled) put_time(node, ".end");
    Py_RETURN_NONE;
  }
  if (OpenRegion* open = take_started(node)) {
    const RefTo<Node> owned(open->node);
    close_region(open->region, node);
    delete open;
  }
  Py_RETURN_NONE;
}

PyObject* node_reset(PyObject* self, PyObject*) {
  dftracer_mark_open(&node_of(self)->clock);
  return new_reference(self);
}

PyObject* node_flush(PyObject* self, PyObject*) {
  Node& node = *node_of(self);
  const EndedMark ended{&node.clock, dftracer_ticks(), &node.names};
  if (node.enabled) close_marks(node, {}, &ended, 1);
  dftracer_mark_open(&node.clock);
  return new_reference(self);
}

void close_region(dftracer_region& region, Node& node, std::string_view more) {
  if (region.opaque[0] == 0) [[unlikely]] {
    if (node.enabled) count_missed();
    return;
  }
  // Protects the resolved arguments where threads run in parallel.
  const CriticalSection section(object_of(&node));
  const std::string_view args = current_arguments(node);
  if (more.empty()) [[likely]] {
    dftracer_close(&region, args.data(), args.size());
  } else {
    std::string& all = per_thread().scratch;
    all.assign(args);
    all.append(more);
    dftracer_close(&region, all.data(), all.size());
  }
}

void close_flow(dftracer_region& region, Node& node, std::string_view more, const FlowEnd& end) {
  if (end.ends == 0 || region.opaque[0] == 0) {
    close_region(region, node, more);
    return;
  }
  const CriticalSection section(object_of(&node));
  std::string& all = per_thread().scratch;
  all.assign(current_arguments(node));
  all.append(more);
  append_flow(all, end.flow, end.ends);
  dftracer_close_flow(&region, all.data(), all.size());
}

void close_marks(Node& node, std::string_view more, const EndedMark* ended, int count) {
  const CriticalSection section(object_of(&node));
  std::string& all = per_thread().scratch;
  all.assign(current_arguments(node));
  all.append(more);
  for (const EndedMark* it = ended; it != ended + count; ++it)
    dftracer_mark_close(it->mark, it->end, it->names, all.data(), all.size());
}

}  // namespace dft::python
