// Encodes Python values as arguments of a record: scalars as they are, containers as JSON.
#include "python/values.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>

#include "api/core_abi.hpp"
#include "format/escape.hpp"
#include "record/event.hpp"

namespace dft::python {
namespace {

using record::Arg;
using record::ArgType;

// A container that is nested deeper, longer or larger than this is shown by its type.
constexpr int kDepth = 16;
constexpr Py_ssize_t kItems = 4096;
constexpr std::size_t kJsonBytes = std::size_t{1} << 20;

void append_raw(std::string& out, std::uint32_t key, ArgType type, std::uint64_t word) {
  const Arg arg{key, type, {}, word};
  out.append(reinterpret_cast<const char*>(&arg), sizeof arg);
}

void append_bytes(std::string& out, std::uint32_t key, ArgType type, std::string_view bytes) {
  if (bytes.size() > record::kMaxString) bytes = bytes.substr(0, record::kMaxString);
  append_raw(out, key, type, bytes.size());
  out.append(bytes);
  out.append(record::padded(bytes.size()) - bytes.size(), '\0');
}

const char* type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }
bool is_of(PyObject* object, const char* prefix) {
  return std::strncmp(type_name(object), prefix, std::strlen(prefix)) == 0;
}

Ref attribute(PyObject* object, const char* name) {
  Ref found(PyObject_GetAttrString(object, name));
  if (!found) PyErr_Clear();
  return found;
}

bool attribute_is(PyObject* object, const char* name, PyObject* wanted) {
  const Ref found = attribute(object, name);
  const bool same = found && PyObject_RichCompareBool(found.get(), wanted, Py_EQ) == 1;
  PyErr_Clear();
  return same;
}

Ref item_of_scalar_array(PyObject* object) {
  const Ref zero(PyLong_FromLong(0));
  Ref item;
  if (attribute_is(object, "ndim", zero.get()))
    item = Ref(PyObject_CallMethod(object, "item", nullptr));
  PyErr_Clear();
  return item;
}

// Is it the class of that name in that module? A user's class of the same name is left alone.
bool is_instance_of(PyObject* object, const char* module, const char* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (std::strcmp(type->tp_name, name) != 0 || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0)
    return false;
  PyObject* where = PyDict_GetItemString(type->tp_dict, "__module__");
  if (where == nullptr || !PyUnicode_Check(where)) return false;
  const char* text = PyUnicode_AsUTF8(where);
  if (text == nullptr) PyErr_Clear();
  return text != nullptr && std::strncmp(text, module, std::strlen(module)) == 0;
}

// By the first letters of a numpy type's name, what its scalars are.
Ref plain_numpy(PyObject* object) {
  const char* kind = type_name(object) + 6;
  const auto begins = [kind](const char* word) {
    return std::strncmp(kind, word, std::strlen(word)) == 0;
  };
  if (begins("int") || begins("uint") || begins("longlong") || begins("ulonglong"))
    return Ref(PyNumber_Index(object));
  if (begins("float") || begins("longdouble")) return Ref(PyNumber_Float(object));
  if (begins("bool")) return Ref(PyBool_FromLong(PyObject_IsTrue(object) == 1));
  return std::strcmp(kind, "ndarray") == 0 ? item_of_scalar_array(object) : Ref();
}

bool is_plain(PyObject* value) {
  return PyBool_Check(value) || PyLong_Check(value) || PyFloat_Check(value) ||
         PyUnicode_Check(value) || PyBytes_Check(value) || value == Py_None;
}

}  // namespace

Ref plain_value(PyObject* object) {
  Ref plain;
  if (is_of(object, "numpy.") && (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) {
    plain = plain_numpy(object);
  } else if (is_instance_of(object, "torch", "Tensor") ||
             is_instance_of(object, "torch", "Parameter")) {
    // One on a device is not fetched: that would wait for the device.
    if (attribute_is(object, "is_cpu", Py_True)) plain = item_of_scalar_array(object);
  } else if (is_instance_of(object, "dftracer.", "TagValue")) {
    plain = attribute(object, "plain");
  } else if (is_instance_of(object, "pathlib", "PosixPath") ||
             is_instance_of(object, "pathlib", "PurePosixPath")) {
    plain = Ref(PyOS_FSPath(object));
  }
  PyErr_Clear();
  if (plain && !is_plain(plain.get())) plain.reset();
  return plain;
}

namespace {

// Decimal digits of an int beyond 64 bits; hexadecimal where Python refuses to write so many.
Ref digits_of(PyObject* number) {
  Ref digits(PyLong_Type.tp_repr(number));
  if (!digits) {
    PyErr_Clear();
    digits = Ref(PyNumber_ToBase(number, 16));
  }
  PyErr_Clear();
  return digits;
}

struct Integer {
  ArgType type;
  std::uint64_t bits;
};

// False when it does not fit into 64 bits.
bool to_integer(PyObject* number, Integer& integer) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) {
    integer = {ArgType::kInt, static_cast<std::uint64_t>(value)};
    return true;
  }
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() == nullptr) {
      integer = {ArgType::kUint, large};
      return true;
    }
    PyErr_Clear();
  }
  return false;
}

bool is_container(PyObject* object) {
  return PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object) ||
         PyAnySet_Check(object);
}

// Writes JSON without blanks, which the sink copies into the event as it is.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  bool value(PyObject* object, int depth) {
    return write(object, depth) && out_.size() <= kJsonBytes;
  }

 private:
  bool write(PyObject* object, int depth) {
    if (object == Py_None) {
      out_ += "null";
    } else if (PyBool_Check(object)) {
      out_ += object == Py_True ? "true" : "false";
    } else if (PyLong_Check(object)) {
      integer(object);
    } else if (PyFloat_Check(object)) {
      real(PyFloat_AS_DOUBLE(object));
    } else if (PyUnicode_Check(object)) {
      string(object);
    } else if (PyBytes_Check(object)) {
      string(object);
    } else if (is_container(object)) {
      if (depth >= kDepth) {
        quoted(type_name(object));
        return true;
      }
      return PyDict_Check(object) ? dict(object, depth) : sequence(object, depth);
    } else if (const Ref plain = plain_value(object)) {
      return value(plain.get(), depth);
    } else {
      quoted(type_name(object));
    }
    return true;
  }

  void integer(PyObject* number) {
    Integer value;
    if (to_integer(number, value)) {
      char digits[24];
      const char* end =
          value.type == ArgType::kInt
              ? std::to_chars(digits, std::end(digits), static_cast<std::int64_t>(value.bits)).ptr
              : std::to_chars(digits, std::end(digits), value.bits).ptr;
      out_.append(std::string_view(digits, static_cast<std::size_t>(end - digits)));
    } else if (const Ref digits = digits_of(number)) {
      string(digits.get());
    } else {
      out_ += "null";
    }
  }

  void real(double number) {
    char* text = std::isfinite(number)
                     ? PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr)
                     : nullptr;
    out_ += text != nullptr ? text : "null";
    PyMem_Free(text);
  }

  void string(PyObject* text) {
    Ref held;
    quoted(text_of(text, held));
  }

  // By the trace's own escaper, so that text looks the same in a name and in JSON.
  void quoted(std::string_view text) {
    const std::size_t begin = out_.size();
    out_.resize(begin + text.size() * format::kEscapeGrowth + 2);
    char* at = out_.data() + begin;
    *at++ = '"';
    at = format::escape(at, text);
    *at++ = '"';
    out_.resize(static_cast<std::size_t>(at - out_.data()));
  }

  // Keys that are not strings, as JSON writers usually show them.
  void key(PyObject* object) {
    if (PyUnicode_Check(object)) {
      string(object);
      return;
    }
    std::string text;
    const bool simple = object == Py_None || PyLong_Check(object) || PyFloat_Check(object);
    if (!simple || !JsonWriter(text).write(object, 0)) text = type_name(object);
    if (text.front() == '"') text = text.substr(1, text.size() - 2);
    quoted(text);
  }

  bool dict(PyObject* object, int depth) {
    if (PyDict_Size(object) > kItems) return false;
    out_ += '{';
    PyObject* name = nullptr;
    PyObject* item = nullptr;
    Py_ssize_t at = 0;
    bool first = true;
    std::set<std::string> seen;
    while (PyDict_Next(object, &at, &name, &item) != 0) {
      if (!first) out_ += ',';
      first = false;
      const std::size_t begin = out_.size();
      key(name);
      // 1 and "1" are two keys of a dict, and would be one of an object.
      while (!seen.insert(out_.substr(begin)).second) out_.insert(out_.size() - 1, 1, '_');
      out_ += ':';
      // Converting a foreign scalar may run code that changes the dict.
      const Ref held = Ref::borrow(item);
      if (!value(item, depth + 1)) return false;
    }
    out_ += '}';
    return true;
  }

  // Reads the items from the object itself: a subclass may have an __iter__ of its own.
  bool sequence(PyObject* object, int depth) {
    const Py_ssize_t count = PyList_Check(object)    ? PyList_GET_SIZE(object)
                             : PyTuple_Check(object) ? PyTuple_GET_SIZE(object)
                                                     : PySet_GET_SIZE(object);
    if (count > kItems) return false;
    const Ref items(PyAnySet_Check(object) ? PySet_Type.tp_iter(object) : nullptr);
    PyErr_Clear();
    bool done = true;
    out_ += '[';
    for (Py_ssize_t i = 0; done && i < count; ++i) {
      Ref item;
      if (items) {
        item = Ref(PyIter_Next(items.get()));
      } else if (PyTuple_Check(object)) {
        item = Ref::borrow(PyTuple_GET_ITEM(object, i));
      } else if (PyList_Check(object) && i < PyList_GET_SIZE(object)) {
        item = Ref::borrow(PyList_GET_ITEM(object, i));
      }
      if (!item) break;
      if (i != 0) out_ += ',';
      done = value(item.get(), depth + 1);
    }
    out_ += ']';
    PyErr_Clear();
    return done;
  }

  std::string& out_;
};

// A key that the name table does not take stands in the record, before the value.
std::uint32_t key_id(std::string& out, PyObject* key) {
  Ref held;
  Ref digits;
  std::string_view text;
  if (PyUnicode_Check(key) || PyBytes_Check(key)) {
    text = text_of(key, held);
  } else if (PyLong_CheckExact(key)) {
    digits = digits_of(key);
    if (digits) text = text_of(digits.get(), held);
  } else {
    text = type_name(key);
  }
  if (text.empty()) text = "unnamed";
  const std::uint32_t id = dftracer_intern(text.data(), text.size());
  if (id == 0) append_bytes(out, 0, ArgType::kInlineKey, text);
  return id;
}

void append_value(std::string& out, std::uint32_t key, PyObject* value) {
  if (PyLong_Check(value)) {  // a bool is one as well
    Integer integer;
    if (to_integer(value, integer)) {
      append_raw(out, key, integer.type, integer.bits);
      return;
    }
    const Ref digits = digits_of(value);
    Ref held;
    append_bytes(out, key, ArgType::kString,
                 digits ? text_of(digits.get(), held) : std::string_view());
  } else if (PyFloat_Check(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    std::uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    append_raw(out, key, ArgType::kFloat, bits);
  } else if (PyUnicode_Check(value) || PyBytes_Check(value)) {
    Ref held;
    append_bytes(out, key, ArgType::kString, text_of(value, held));
  } else if (value == Py_None) {
    append_raw(out, key, ArgType::kNull, 0);
  } else if (is_container(value)) {
    std::string json;
    if (JsonWriter(json).value(value, 0)) {
      append_bytes(out, key, ArgType::kJson, json);
    } else {
      append_bytes(out, key, ArgType::kString, type_name(value));
    }
  } else if (const Ref plain = plain_value(value)) {
    append_value(out, key, plain.get());
  } else {
    append_bytes(out, key, ArgType::kString, type_name(value));
  }
}

}  // namespace

std::string_view text_of(PyObject* object, Ref& held) {
  held.reset();
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text != nullptr) return {text, static_cast<std::size_t>(size)};
    PyErr_Clear();
    held = Ref(PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"));
    if (!held) {
      PyErr_Clear();
      held = Ref(PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace"));
    }
  } else if (PyBytes_Check(object)) {
    held = Ref::borrow(object);
  }
  if (!held) {
    PyErr_Clear();
    return {};
  }
  return {PyBytes_AS_STRING(held.get()), static_cast<std::size_t>(PyBytes_GET_SIZE(held.get()))};
}

std::string display_text(PyObject* value) {
  if (PyUnicode_Check(value) || PyBytes_Check(value)) {
    Ref held;
    return std::string(text_of(value, held));
  }
  std::string json;
  if (!JsonWriter(json).value(value, 0)) return type_name(value);
  // A value without a JSON form of its own is a string there; here it needs no quotes.
  if (json.size() >= 2 && json.front() == '"') json = json.substr(1, json.size() - 2);
  return json;
}

void append_argument(std::string& out, PyObject* key, PyObject* value) {
  const std::uint32_t id = key_id(out, key);
  append_value(out, id, value);
}

void append_int(std::string& out, PyObject* key, long long value) {
  const std::uint32_t id = key_id(out, key);
  append_raw(out, id, ArgType::kInt, static_cast<std::uint64_t>(value));
}

bool append_ints(std::string& out, PyObject* key, PyObject* const* values, std::size_t count) {
  constexpr std::size_t kMost = 64;
  constexpr std::size_t kLongest = 20;  // a sign and 19 digits
  char text[kMost * (kLongest + 1) + 2];
  if (count > kMost) return false;
  char* at = text;
  *at++ = '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (!PyLong_CheckExact(values[i])) return false;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(values[i], &overflow);
    if (overflow != 0) return false;
    if (i != 0) *at++ = ',';
    at = std::to_chars(at, at + kLongest, value).ptr;
  }
  *at++ = ']';
  const auto size = static_cast<std::size_t>(at - text);
  out.reserve(out.size() + 4 * sizeof(Arg) + size);
  const std::uint32_t id = key_id(out, key);
  append_bytes(out, id, ArgType::kJson, {text, size});
  return true;
}

void append_flow(std::string& out, std::uint64_t flow, std::uint32_t ends) {
  append_raw(out, ends, ArgType::kFlow, flow);
}

void replace_int(std::string& argument, long long value) {
  std::memcpy(argument.data() + argument.size() - sizeof value, &value, sizeof value);
}

bool replace_int(std::string& argument, PyObject* value) {
  Arg arg;
  if (argument.size() != sizeof arg || !PyLong_CheckExact(value)) return false;
  std::memcpy(&arg, argument.data(), sizeof arg);
  if (arg.type != ArgType::kInt) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) return false;
  replace_int(argument, number);
  return true;
}

void append_ticks(std::string& out, PyObject* key, unsigned long long ticks) {
  const std::uint32_t id = key_id(out, key);
  append_raw(out, id, ArgType::kTicks, ticks);
}

void append_dict(std::string& out, PyObject* dict) {
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value) != 0) {
    if (PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == 2 &&
        PyLong_CheckExact(PyTuple_GET_ITEM(value, 0))) {
      value = PyTuple_GET_ITEM(value, 1);
    }
    // Converting a foreign scalar may run code that changes the dict.
    const Ref held_key = Ref::borrow(key);
    const Ref held_value = Ref::borrow(value);
    append_argument(out, key, value);
  }
}

}  // namespace dft::python
