// The Python code that the calling thread runs, read from its frames without the GIL: only the thread
// itself changes them, and it is in a call. Used by call_site.cpp, on the program's threads.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dft::intercept {

// Where a release of CPython keeps what is needed: byte offsets in its structures.
struct PythonLayout {
  static constexpr std::uint8_t kNone = 255;
  std::uint8_t minor;      // of the version 3.x
  std::uint8_t frame;      // PyThreadState: the innermost frame, or what points to it
  std::uint8_t indirect;   // _PyCFrame: the innermost frame; kNone: nothing lies between
  std::uint8_t code;       // frame: its code object
  std::uint8_t outer;      // frame: the frame that called it
  std::uint8_t at;         // frame: the instruction; without `start`, its number
  std::uint8_t owner;      // frame: 3 and more for those that run no code; kNone: there are none
  std::uint8_t start;      // code: the first instruction; kNone: frames have numbers
  std::uint8_t file;       // code: file name
  std::uint8_t name;       // code: qualified name, where there is one
  std::uint8_t line;       // code: number of the first line
  std::uint8_t lines;      // code: which instruction is on which line
  std::uint8_t version;    // code: a number that no other code object has had; kNone: it has none
  std::uint8_t ascii;      // str: characters of ASCII text
  std::uint8_t not_ascii;  // str: other characters
};

// An interpreter that is loaded into this process.
struct Python {
  const PythonLayout* layout;
  // PyGILState_GetThisThreadState: null on threads that Python does not know.
  void* (*this_thread)();
  int (*is_finalizing)();  // Py_IsFinalizing
  const void* code_type;   // &PyCode_Type
  const void* text_type;   // &PyUnicode_Type
  std::uintptr_t begin;    // of the object that holds the interpreter itself
  std::uintptr_t end;
};

// The layout of this version ("3.11.7 (main, ..."); null if it is not known.
const PythonLayout* layout_of(const char* version) noexcept;

// A place in Python code. The innermost frame outside of libraries: the line that a user knows; and
// what it called, if that is Python code. Without such a frame, the innermost of all.
struct PythonPlace {
  const char* code;
  std::uint64_t at;    // the frame's instruction
  const char* callee;  // a code object; null if the code made the call itself
};

// The instructions of the frames up to a place, innermost first. What follows them is not looked at.
struct FrameTrail {
  static constexpr std::uint32_t kLongest = 5;
  std::uint64_t at[kLongest];
  std::uint32_t length;  // 0: too long
};

// From this frame on. False if there is no code.
bool find_place(const Python& python, const char* frame, PythonPlace& place,
                FrameTrail& trail) noexcept;

// ---- Read at every call, hence inline.

namespace in_python {

inline constexpr std::size_t kLength = 16;  // str and bytes
inline constexpr std::size_t kBytes = 32;   // bytes: the first one
inline constexpr std::uint8_t kRunsNoCode = 3;

template <class T>
inline T load(const char* object, std::size_t offset) {
  T value;
  std::memcpy(&value, object + offset, sizeof value);
  return value;
}
inline const char* pointer(const char* object, std::size_t offset) {
  return load<const char*>(object, offset);
}

inline bool runs_code(const PythonLayout& layout, const char* frame) {
  return layout.owner == PythonLayout::kNone ||
         load<std::uint8_t>(frame, layout.owner) < kRunsNoCode;
}

// Where a frame is: the address of its instruction. Where frames have numbers, with the code's own.
inline std::uint64_t at_of(const PythonLayout& layout, const char* frame) {
  if (layout.start != PythonLayout::kNone) [[likely]]
    return load<std::uint64_t>(frame, layout.at);
  const std::uint64_t number = load<std::uint32_t>(frame, layout.at);
  return load<std::uint64_t>(frame, layout.code) ^ number << 40;
}

}  // namespace in_python

// The innermost frame; null if the thread runs no Python code. An interpreter that ends has freed the
// frames of daemon threads, which come back from their calls later.
inline const char* innermost_frame(const Python& python) noexcept {
  if (python.is_finalizing() != 0) [[unlikely]]
    return nullptr;
  const auto* thread = static_cast<const char*>(python.this_thread());
  if (thread == nullptr) return nullptr;
  const char* frame = in_python::pointer(thread, python.layout->frame);
  if (python.layout->indirect == PythonLayout::kNone || frame == nullptr) return frame;
  return in_python::pointer(frame, python.layout->indirect);
}

// Whether the frames are those of this trail, which is not empty.
inline bool follows(const PythonLayout& layout, const char* frame,
                    const FrameTrail& trail) noexcept {
  for (std::uint32_t i = 0; frame != nullptr; frame = in_python::pointer(frame, layout.outer)) {
    if (!in_python::runs_code(layout, frame)) continue;
    if (in_python::at_of(layout, frame) != trail.at[i]) return false;
    if (++i == trail.length) return true;
  }
  return false;
}

// Tells code objects that follow each other at one address apart: by their version, or, where they have
// none, by what they own. Strings may be followed by others at their addresses, too: hence some of what
// they say. Objects are larger than what is read here.
inline std::uint64_t identity_of(const PythonLayout& layout, const char* code) noexcept {
  using in_python::load;
  if (layout.version != PythonLayout::kNone) [[likely]] {
    const auto version = load<std::uint32_t>(code, layout.version);
    if (version != 0) [[likely]]  // the numbers have not run out
      return version;
  }
  const char* file = in_python::pointer(code, layout.file);
  const char* lines = in_python::pointer(code, layout.lines);
  const auto length = load<std::uint64_t>(file, in_python::kLength);
  const auto tail = load<std::uint64_t>(file, layout.ascii + length - sizeof length);
  return reinterpret_cast<std::uintptr_t>(file) ^
         std::rotl(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(lines)), 17) ^
         std::rotl(load<std::uint64_t>(code, layout.name), 31) ^ std::rotl(tail, 7) ^ length << 52 ^
         std::rotl(load<std::uint64_t>(lines, in_python::kBytes), 43) ^
         load<std::uint64_t>(lines, in_python::kLength) << 40 ^
         static_cast<std::uint64_t>(load<std::uint32_t>(code, layout.line)) << 20;
}

// Whether the thread's innermost frame is what the layout promises. Asks the kernel before each load,
// which would crash on builds of Python that have other structures.
enum class Fit : std::uint8_t { kNoFrame, kFits, kFitsNot };
Fit check_layout(const Python& python) noexcept;

// "file:line function", and " > module.function" for the callee. Returns its length.
std::size_t describe(const Python& python, const PythonPlace& place, char* to,
                     std::size_t room) noexcept;

}  // namespace dft::intercept
