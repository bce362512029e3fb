// What a thread keeps for itself, and the lock of the trees. Included by arguments.cpp and
// node_regions.cpp alone; used by the thread itself, and by others where a comment says so.
#pragma once
#include "python/node.hpp"
#include "python/support/cpython.hpp"

namespace dft::python {

// A region that `with` or start() began.
struct OpenRegion {
  dftracer_region region;
  // Owns a reference while the region is open, and is no RefTo: a thread that ends inside a `with`
  // deletes its regions without the GIL, and must not touch the node.
  Node* node;
  PyObject* context;  // identifies the task; not owned
  const void* thread;
  OpenRegion* below;
};

// What a thread keeps for itself, behind one pointer: every use of a thread-local with a constructor
// would first check whether that has run.
struct PerThread {
  OpenRegion* top = nullptr;    // of `with`
  OpenRegion* spare = nullptr;  // closed ones, for the next `with`
  std::string scratch;
  std::vector<const ArgumentEntry*> process_wide;
  std::vector<const ArgumentEntry*> task_local;
  PerThread* next = nullptr;  // in the list of all threads

  ~PerThread() {
    for (OpenRegion* list : {top, spare}) {
      while (list != nullptr) {
        OpenRegion* below = list->below;
        delete list;
        list = below;
      }
    }
  }
  OpenRegion* take() {
    OpenRegion* open = spare;
    if (open == nullptr) return new OpenRegion;
    spare = open->below;
    return open;
  }
  void give_back(OpenRegion* open) {
    open->below = spare;
    spare = open;
  }
};
extern constinit thread_local PerThread* t_per_thread __attribute__((tls_model("initial-exec")));
PerThread& make_per_thread();
inline PerThread& per_thread() {
  PerThread* mine = t_per_thread;
  return mine != nullptr ? *mine : make_per_thread();
}

// The GIL protects the arguments of the trees and the list of what start() began. Where there is
// none, this does; events whose arguments have not changed never take it.
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

}  // namespace dft::python
