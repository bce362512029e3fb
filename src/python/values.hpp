// Python values as arguments of an event, encoded as the record holds them. Never raises, and never
// runs a user's code: an annotation must not break, or slow down, the program that it describes.
// Called by every other file of the extension, on the thread that runs Python code, with the GIL.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "python/support/ref.hpp"

namespace dft::python {

// The bytes of a str or of bytes; undecodable file names as the bytes that they were. `held` keeps
// them alive. Empty for anything else.
std::string_view text_of(PyObject* object, Ref& held);

// A plain Python value for one of the few foreign types that are known to be cheap and safe to
// convert (scalars of numpy and torch, paths, tags); empty for all others.
Ref plain_value(PyObject* object);
// A value as text: a str or bytes as it is, anything else as JSON.
std::string display_text(PyObject* value);

// Appends `key` and `value`. A key that is no str is shown as a number or by its type.
void append_argument(std::string& out, PyObject* key, PyObject* value);
void append_int(std::string& out, PyObject* key, long long value);
// Ints as one JSON list; false, and nothing appended, if one of the `count` is no int of 64 bits.
bool append_ints(std::string& out, PyObject* key, PyObject* const* values, std::size_t count);
// An end of a flow, as the last argument.
void append_flow(std::string& out, std::uint64_t flow, std::uint32_t ends);
// A length of time in clock ticks.
void append_ticks(std::string& out, PyObject* key, unsigned long long ticks);
// Overwrites an argument that append_argument, or append_int, made of an int; false if it did not,
// or if this one is no int that fits.
bool replace_int(std::string& argument, PyObject* value);
void replace_int(std::string& argument, long long value);
// Every entry of a dict; a value may be wrapped as (role, value), as older callers do.
void append_dict(std::string& out, PyObject* dict);

}  // namespace dft::python
