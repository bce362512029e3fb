// What a thread keeps for itself, and the lock of the trees: shared by the files of the node.
#pragma once
#include "python/node.hpp"

namespace dft::python {

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
  PerThread* next = nullptr;  // in the list of all threads

  ~PerThread() {
    for (Open* list : {top, spare}) {
      while (list != nullptr) {
        Open* below = list->below;
        delete list;
        list = below;
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
extern constinit thread_local PerThread* t_per __attribute__((tls_model("initial-exec")));
PerThread& make_per_thread();
inline PerThread& per_thread() {
  PerThread* mine = t_per;
  return mine != nullptr ? *mine : make_per_thread();
}

// Arguments of the trees, and the list of what start() began, belong to whoever holds the GIL.
// Where there is none, this takes its place; events whose arguments have not changed never come
// here.
#ifdef Py_GIL_DISABLED
class TreeLock {
 public:
  TreeLock() { PyMutex_Lock(&g_mutex); }
  ~TreeLock() { PyMutex_Unlock(&g_mutex); }
  TreeLock(const TreeLock&) = delete;
  TreeLock& operator=(const TreeLock&) = delete;

 private:
  static inline PyMutex g_mutex{};
};
#else
struct TreeLock {
  TreeLock() {}
};
#endif

// The running context: each task has its own, and each thread.
inline PyObject* context_now() { return PyThreadState_Get()->context; }

}  // namespace dft::python
