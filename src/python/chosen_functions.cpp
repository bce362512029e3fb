// The calls of Python functions that the user chose by name (dftracer._functions). From Python 3.12 on
// sys.monitoring calls what is here, for these functions only; before, the interpreter's profile hook
// does, for all functions. A generator or a coroutine is recorded each time that it runs.
#include "python/chosen_functions.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/core_abi.hpp"
#include "python/support/ref.hpp"
#include "python/support/type.hpp"
#include "python/values.hpp"

namespace dft::python {
namespace {

struct ChosenFunction {
  std::string name;
  dftracer_names names;
};

struct OpenCall {
  const ChosenFunction* function;
  std::uint64_t start;
  dftracer_region region;
};

constexpr char kCategory[] = "FUNC";
// Deeper calls are counted as lost.
constexpr std::size_t kMostOpen = 16384;

// By the address of the code object, which is kept alive; null for one that was not chosen. Code objects
// have hashes of their own, but those read all of the code.
std::unordered_map<PyObject*, std::unique_ptr<ChosenFunction>> g_functions;
std::mutex g_lock;              // builds without a GIL
PyObject* g_decide = nullptr;   // code -> name, or None
PyObject* g_disable = nullptr;  // sys.monitoring.DISABLE

// Places stay when calls end: an open region does not move.
thread_local std::vector<std::unique_ptr<OpenCall>> t_open;
thread_local std::size_t t_depth = 0;
thread_local std::size_t t_skipped = 0;
thread_local bool t_deciding = false;

enum class Answer { kUnknown, kNo, kYes };

Answer look_up(PyObject* code, ChosenFunction*& function) {
  const std::lock_guard<std::mutex> locked(g_lock);
  const auto found = g_functions.find(code);
  if (found == g_functions.end()) return Answer::kUnknown;
  function = found->second.get();
  return function != nullptr ? Answer::kYes : Answer::kNo;
}

// Asks for the name of a function that is called for the first time. Nothing that goes wrong there
// reaches the program. `keep`: remember that it was not chosen.
ChosenFunction* decide(PyObject* code, bool keep) {
  t_deciding = true;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref name(PyObject_CallFunctionObjArgs(g_decide, code, nullptr));
  if (!name) PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  t_deciding = false;
  const bool chosen = name && PyUnicode_Check(name.get());
  if (!chosen && !keep) return nullptr;
  std::unique_ptr<ChosenFunction> made;
  if (chosen) {
    made = std::make_unique<ChosenFunction>();
    made->name = display_text(name.get());
    made->names = {0, made->name.data(), made->name.size(), kCategory, sizeof kCategory - 1};
  }
  const std::lock_guard<std::mutex> locked(g_lock);
  const auto [at, is_new] = g_functions.emplace(code, std::move(made));
  if (is_new) Py_INCREF(code);
  return at->second.get();
}

void begin(const ChosenFunction& function) {
  if (t_depth == kMostOpen) {
    ++t_skipped;
    dftracer_count_lost();
    return;
  }
  if (t_depth == t_open.size()) t_open.push_back(std::make_unique<OpenCall>());
  OpenCall& call = *t_open[t_depth++];
  call.function = &function;
  call.start = dftracer_least_ticks() != 0 ? dftracer_ticks() : 0;
  dftracer_open(&call.region, const_cast<dftracer_names*>(&function.names));
}

void end(const ChosenFunction& function) {
  if (t_skipped != 0) {
    --t_skipped;
    return;
  }
  std::size_t at = t_depth;
  while (at != 0 && t_open[at - 1]->function != &function) --at;
  if (at == 0) return;  // it began before it was watched
  // Libraries that switch between stacks (greenlets) end calls in another order.
  for (; at != t_depth; ++at) std::swap(t_open[at - 1], t_open[at]);
  OpenCall& call = *t_open[--t_depth];
  const std::uint64_t least = dftracer_least_ticks();
  if (least != 0 && call.region.opaque[0] != 0 && dftracer_ticks() - call.start < least) {
    dftracer_region_drop(&call.region);
  } else {
    dftracer_close(&call.region, nullptr, 0);
  }
}

// ---- sys.monitoring: callbacks with the code object first

PyObject* on_start(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count == 0 || t_deciding) Py_RETURN_NONE;
  ChosenFunction* function = nullptr;
  if (look_up(args[0], function) == Answer::kUnknown) function = decide(args[0], false);
  if (function == nullptr) {
    Py_INCREF(g_disable);
    return g_disable;
  }
  begin(*function);
  Py_RETURN_NONE;
}

PyObject* on_resume(PyObject*, PyObject* const* args, Py_ssize_t count) {
  ChosenFunction* function = nullptr;
  if (count != 0 && look_up(args[0], function) == Answer::kYes) begin(*function);
  Py_RETURN_NONE;
}

PyObject* on_end(PyObject*, PyObject* const* args, Py_ssize_t count) {
  ChosenFunction* function = nullptr;
  if (count != 0 && look_up(args[0], function) == Answer::kYes) end(*function);
  Py_RETURN_NONE;
}

PyObject* choose_functions(PyObject*, PyObject* args) {
  PyObject* decider = nullptr;
  PyObject* disable = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_choose_functions", &decider, &disable)) return nullptr;
  Py_INCREF(decider);
  Py_INCREF(disable);
  Py_XSETREF(g_decide, decider);
  Py_XSETREF(g_disable, disable);
  Py_RETURN_NONE;
}

// ---- The profile hook

#if PY_VERSION_HEX < 0x030C0000
int on_profile(PyObject*, PyFrameObject* frame, int what, PyObject*) {
  if (what != PyTrace_CALL && what != PyTrace_RETURN) return 0;
  const Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  ChosenFunction* function = nullptr;
  if (look_up(code.get(), function) == Answer::kUnknown && what == PyTrace_CALL)
    function = decide(code.get(), true);
  if (function == nullptr) return 0;
  if (what == PyTrace_CALL) {
    begin(*function);
  } else {
    end(*function);
  }
  return 0;
}
#endif

// Watches the calling thread. As the hook of threading.setprofile() it is called at the first event of
// each thread.
PyObject* profile_thread(PyObject*, PyObject* args) {
#if PY_VERSION_HEX < 0x030C0000
  PyEval_SetProfile(on_profile, nullptr);
  PyObject* frame = nullptr;
  const char* event = "";
  if (PyTuple_GET_SIZE(args) == 3 && PyArg_ParseTuple(args, "Os|O", &frame, &event, &frame) == 0)
    return nullptr;
  if (std::string_view(event) == "call") {
    PyObject* of = PyTuple_GET_ITEM(args, 0);
    on_profile(nullptr, reinterpret_cast<PyFrameObject*>(of), PyTrace_CALL, nullptr);
  }
#else
  (void)args;
#endif
  Py_RETURN_NONE;
}

PyMethodDef g_methods[] = {
    {"_choose_functions", choose_functions, METH_VARARGS,
     "Who names the functions to record, and what switches the others off."},
    {"_function_starts", as_method(on_start), METH_FASTCALL, "PY_START"},
    {"_function_resumes", as_method(on_resume), METH_FASTCALL, "PY_RESUME, PY_THROW"},
    {"_function_ends", as_method(on_end), METH_FASTCALL, "PY_RETURN, PY_YIELD, PY_UNWIND"},
    {"_profile_thread", profile_thread, METH_VARARGS, "Watch this thread by the profile hook."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_chosen_functions(PyObject* module) {
  return PyModule_AddFunctions(module, g_methods) == 0;
}

}  // namespace dft::python
