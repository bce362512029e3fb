// Batch: takes another profiler's events in the order of their starts and records them, each beside
// the thread that it happened on. They were timed by another clock than ours, close but not the
// same, so on the thread's own line they would cross our spans by a microsecond, and viewers would
// drop them. Hence lanes of their own; among themselves they nest there as they did, and one that
// crosses another (asynchronous work, streams) goes to a further lane.
// Called by dftracer.python.torch when a profile ends, with the GIL.
#include "python/kineto_batch.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/core_abi.hpp"
#include "python/support/type.hpp"
#include "python/values.hpp"
#include "record/event.hpp"

namespace dft::python {
namespace {

using record::kFirstForeign;
using record::kLastLane;
using record::kThreadBits;

PyTypeObject* g_batch_type = nullptr;

// An event that may still contain later ones.
struct OpenEvent {
  dftracer_foreign event;
  std::uint64_t end_ns;
  std::string name;
  std::string args;
  long long cpu_memory;  // the group's, when it began
  long long device_memory;
};

struct EventLane {
  std::uint32_t thread;
  std::vector<OpenEvent> open;
};

// A thread, or a queue of a device: its events nest, mostly.
struct Group {
  std::uint32_t thread;  // 0: of a device
  std::string label;
  std::vector<EventLane> lanes;
  long long cpu_memory = 0;
  long long device_memory = 0;
};

struct KinetoBatch {
  std::string category;
  std::string label;
  bool with_memory;
  std::int64_t ahead;  // of the trace's clock, in ns
  Ref cpu_key = intern("cpu_memory");
  Ref device_key = intern("device_memory_usage");
  std::uint64_t recorded = 0;
  std::vector<Group> groups{};
};

KinetoBatch& batch_of(PyObject* object) { return state_of<KinetoBatch>(object); }

// Queues of devices keep their lanes through the whole run, whichever batch they are in.
std::uint32_t device_lane(const std::string& label) {
  static std::mutex lock;
  static auto& known = *new std::map<std::string, std::uint32_t>;
  const std::scoped_lock locked(lock);
  const auto next = static_cast<std::uint32_t>(known.size()) + 1;
  const std::uint32_t number = known.try_emplace(label, next).first->second;
  return (number < kLastLane ? number : kLastLane) << kThreadBits;
}

EventLane& add_lane(const KinetoBatch& batch, Group& group) {
  const auto number = static_cast<std::uint32_t>(group.lanes.size());
  std::string label = group.thread != 0 ? group.label + ' ' + batch.label : group.label;
  if (number != 0) label += ' ' + std::to_string(number + 1);
  const std::uint32_t thread = group.thread != 0
                                   ? group.thread + ((kFirstForeign + number) << kThreadBits)
                                   : device_lane(label);
  dftracer_name_lane(thread, label.data(), label.size());
  group.lanes.push_back({thread, {}});
  return group.lanes.back();
}

void write(KinetoBatch& batch, const Group& group, OpenEvent& open) {
  if (batch.with_memory && group.thread != 0) {
    append_int(open.args, batch.cpu_key.get(), group.cpu_memory - open.cpu_memory);
    const long long device = group.device_memory - open.device_memory;
    if (device != 0) append_int(open.args, batch.device_key.get(), device);
  }
  dftracer_names names{0, open.name.data(), open.name.size(), batch.category.data(),
                       batch.category.size()};
  dftracer_foreign_with(&open.event, &names, open.args.data(), open.args.size());
  ++batch.recorded;
}

// Ends what has ended by `now`. `inclusive`: also what ends right then.
void end_until(KinetoBatch& batch, Group& group, std::uint64_t now, bool inclusive) {
  for (EventLane& lane : group.lanes) {
    while (!lane.open.empty()) {
      OpenEvent& last = lane.open.back();
      if (last.end_ns > now || (last.end_ns == now && !inclusive)) break;
      write(batch, group, last);
      lane.open.pop_back();
    }
  }
}

// The first lane on which it fits; the last one of all takes what is left.
EventLane& lane_for(KinetoBatch& batch, Group& group, std::uint64_t end_ns) {
  for (EventLane& lane : group.lanes) {
    if (lane.open.empty() || end_ns <= lane.open.back().end_ns) return lane;
  }
  if (group.lanes.size() > kLastLane - kFirstForeign) return group.lanes.back();
  return add_lane(batch, group);
}

PyObject* add_group(KinetoBatch& batch, std::uint32_t thread, std::string label) {
  batch.groups.push_back({thread, std::move(label), {}});
  return PyLong_FromSize_t(batch.groups.size() - 1);
}

// thread(tid): the group of a thread.
PyObject* batch_thread(PyObject* self, PyObject* number) {
  const unsigned long tid = PyLong_AsUnsignedLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (tid == 0 || tid >> kThreadBits != 0) {
    PyErr_SetString(PyExc_ValueError, "not the number of a thread");
    return nullptr;
  }
  return add_group(batch_of(self), static_cast<std::uint32_t>(tid), std::to_string(tid));
}

// device(label): the group of a queue of a device.
PyObject* batch_device(PyObject* self, PyObject* label) {
  Ref held;
  return add_group(batch_of(self), 0, std::string(text_of(label, held)));
}

Group* group_at(KinetoBatch& batch, PyObject* index) {
  const std::size_t at = PyLong_AsSize_t(index);
  if (PyErr_Occurred() == nullptr && at < batch.groups.size()) return &batch.groups[at];
  PyErr_Clear();
  PyErr_SetString(PyExc_IndexError, "no such group");
  return nullptr;
}

std::uint64_t in_trace_time(const KinetoBatch& batch, PyObject* ns) {
  const long long time = PyLong_AsLongLong(ns);
  const long long shifted = time + batch.ahead;
  return shifted > 0 ? static_cast<std::uint64_t>(shifted) : 0;
}

// Begins an event on the first lane that has room for it.
OpenEvent& begin(KinetoBatch& batch, Group& group, std::string_view name, std::uint64_t start,
                 std::uint64_t end) {
  EventLane& lane = lane_for(batch, group, end);
  const OpenEvent* outer = lane.open.empty() ? nullptr : &lane.open.back();
  lane.open.push_back(
      {{dftracer_new_id(), outer != nullptr ? outer->event.id : 0,
        static_cast<std::uint32_t>(lane.open.size() + 1), lane.thread, start, end - start},
       end,
       std::string(name),
       {},
       group.cpu_memory,
       group.device_memory});
  return lane.open.back();
}

// add(group, name, start_ns, end_ns, arguments=None)
PyObject* batch_add(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  KinetoBatch& batch = batch_of(self);
  Group* group = count >= 4 ? group_at(batch, args[0]) : nullptr;
  if (group == nullptr) {
    if (PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_TypeError, "add(group, name, start_ns, end_ns, arguments=None)");
    return nullptr;
  }
  const std::uint64_t start = in_trace_time(batch, args[2]);
  const std::uint64_t end = in_trace_time(batch, args[3]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  Ref held;
  const std::string_view name = text_of(args[1], held);
  end_until(batch, *group, start, true);
  OpenEvent& open = begin(batch, *group, name, start, end > start ? end : start);
  if (count > 4 && PyDict_Check(args[4])) append_dict(open.args, args[4]);
  Py_RETURN_NONE;
}

// memory(group, at_ns, bytes, on_device): counts for the events around it; where there is none, it
// is shown as one.
PyObject* batch_memory(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  KinetoBatch& batch = batch_of(self);
  Group* group = count == 4 ? group_at(batch, args[0]) : nullptr;
  if (group == nullptr) {
    if (PyErr_Occurred() == nullptr)
      PyErr_SetString(PyExc_TypeError, "memory(group, at_ns, bytes, on_device)");
    return nullptr;
  }
  const std::uint64_t at = in_trace_time(batch, args[1]);
  const long long bytes = PyLong_AsLongLong(args[2]);
  const int on_device = PyObject_IsTrue(args[3]);
  if (PyErr_Occurred() != nullptr) return nullptr;
  end_until(batch, *group, at, false);
  bool around = false;
  for (const EventLane& lane : group->lanes) around |= !lane.open.empty();
  if (!around) begin(batch, *group, "[memory]", at, at);
  (on_device != 0 ? group->device_memory : group->cpu_memory) += bytes;
  Py_RETURN_NONE;
}

// finish(): ends what is open; the number of events that were recorded.
PyObject* batch_finish(PyObject* self, PyObject*) {
  KinetoBatch& batch = batch_of(self);
  for (Group& group : batch.groups) end_until(batch, group, ~std::uint64_t{0}, true);
  return PyLong_FromUnsignedLongLong(batch.recorded);
}

// Batch(category, label, with_memory=False)
PyObject* batch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* category = nullptr;
  const char* label = nullptr;
  int with_memory = 0;
  if (!PyArg_ParseTuple(args, "ss|p:Batch", &category, &label, &with_memory)) return nullptr;
  return create<KinetoBatch>(type, category, label, with_memory != 0, dftracer_ahead_ns())
      .release();
}

PyObject* trace_path(PyObject*, PyObject*) {
  char path[4096];
  const std::size_t size = dftracer_trace_path(path, sizeof path);
  return PyUnicode_DecodeFSDefaultAndSize(path, static_cast<Py_ssize_t>(size));
}
PyObject* ahead(PyObject*, PyObject*) { return PyLong_FromLongLong(dftracer_ahead_ns()); }

PyMethodDef g_batch_methods[] = {
    {"thread", batch_thread, METH_O, "The group of a thread, for add()."},
    {"device", batch_device, METH_O, "The group of a queue of a device, for add()."},
    {"add", as_method(batch_add), METH_FASTCALL, "One event; in the order of their starts."},
    {"memory", as_method(batch_memory), METH_FASTCALL, "Memory was taken or given back."},
    {"finish", batch_finish, METH_NOARGS, "Record what is left; the number of events."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot g_batch_slots[] = {{Py_tp_new, as_slot(batch_new)},
                               {Py_tp_dealloc, as_slot(deallocate<KinetoBatch>)},
                               {Py_tp_methods, g_batch_methods},
                               {0, nullptr}};
PyType_Spec g_batch_spec = {"dftracer._core.Batch", sizeof(Object<KinetoBatch>), 0,
                            Py_TPFLAGS_DEFAULT, g_batch_slots};

PyMethodDef g_functions[] = {
    {"trace_path", trace_path, METH_NOARGS, "The file of this process; \"\" without one."},
    {"ahead", ahead, METH_NOARGS, "How far the trace's clock is ahead of the wall's, in ns."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_batch_type(PyObject* module) {
  if (g_batch_type == nullptr) g_batch_type = make_type(g_batch_spec);
  return g_batch_type != nullptr && add_type(module, "Batch", g_batch_type) &&
         PyModule_AddFunctions(module, g_functions) == 0;
}

}  // namespace dft::python
