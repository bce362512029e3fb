// What the result of a call means: whether it failed, and how many bytes it moved.
#pragma once
#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <cwchar>
#include <type_traits>

namespace dft::intercept {

// Bytes that a call moved, as the kernel counts them.
struct Moved {
  std::uint64_t read;
  std::uint64_t written;
};
template <class T>
constexpr Moved reads(T n) {
  return {static_cast<std::int64_t>(n) > 0 ? static_cast<std::uint64_t>(n) : 0, 0};
}
template <class T>
constexpr Moved writes(T n) {
  return {0, static_cast<std::int64_t>(n) > 0 ? static_cast<std::uint64_t>(n) : 0};
}
template <class T>
constexpr Moved both_ways(T n) {
  return {reads(n).read, reads(n).read};
}
// Moves bytes that the kernel does not count as read and written.
template <class T>
constexpr Moved uncounted(T) {
  return {0, 0};
}
constexpr Moved moves_nothing() { return {0, 0}; }

// Types that tell what a result means. The ABI is that of the C type.
struct Void {};
using LineResult = unsigned char*;  // null at the end of the file is not a failure
enum CharResult : int {};           // EOF is not a failure
enum CountResult : ssize_t {};      // -1 at the end of the file is not a failure
enum WriteResult : int {};          // EOF is a failure
template <class R>
constexpr bool has_failed(R ret) {
  if constexpr (std::is_same_v<R, FILE*> || std::is_same_v<R, DIR*> || std::is_same_v<R, void*> ||
                std::is_same_v<R, char*>) {
    return ret == nullptr || ret == reinterpret_cast<R>(-1);
  } else if constexpr (std::is_same_v<R, WriteResult>) {
    return ret < 0;
  } else if constexpr (std::is_integral_v<R> && std::is_signed_v<R>) {
    return ret == -1;
  } else {
    return false;
  }
}
template <class R>
constexpr bool kIsNumber = std::is_integral_v<R> || std::is_enum_v<R>;
inline std::size_t length_of(LineResult line) {
  return line != nullptr ? std::strlen(reinterpret_cast<const char*>(line)) : 0;
}
inline std::size_t put_length(WriteResult ret, const char* text) {
  return ret >= 0 ? std::strlen(text) : 0;
}
constexpr std::size_t one(int ret) { return ret >= 0 ? 1 : 0; }
// Wide characters are written as bytes of the locale.
inline std::size_t wide_length(const wchar_t* text) {
  std::mbstate_t state{};
  const std::size_t n = text != nullptr ? std::wcsrtombs(nullptr, &text, 0, &state) : 0;
  return n != static_cast<std::size_t>(-1) ? n : 0;
}
inline std::size_t wide_length(LineResult line) {
  return wide_length(reinterpret_cast<const wchar_t*>(line));
}
inline std::size_t put_length(WriteResult ret, const wchar_t* text) {
  return ret >= 0 ? wide_length(text) : 0;
}
inline std::size_t wide_one(int ret) {
  const wchar_t text[] = {static_cast<wchar_t>(ret), L'\0'};
  return ret > 0 ? wide_length(text) : one(ret);
}
// -1 is a valid int: only the stream's flags tell the end of the file from it.
inline std::size_t word_read(int ret, const FILE* stream) {
  constexpr int kEnded = 0x10 | 0x20;  // _IO_EOF_SEEN | _IO_ERR_SEEN
  return ret == -1 && (stream->_flags & kEnded) != 0 ? 0 : sizeof(int);
}
// The whole buffer: code inlined by the compiler empties it without a further call.
inline std::size_t refilled(CharResult ret, FILE* stream) {
  return ret >= 0 ? 1 + static_cast<std::size_t>(stream->_IO_read_end - stream->_IO_read_ptr) : 0;
}
// Messages of sendmmsg and recvmmsg: the kernel has written the length of each that was moved.
inline std::size_t sum_of_lengths(long ret, const void* messages) {
  std::size_t sum = 0;
  for (long i = 0; i < ret; ++i) sum += static_cast<const mmsghdr*>(messages)[i].msg_len;
  return sum;
}
// Whether what was received has left the socket, and came from its peer.
constexpr bool taken(int flags) { return (flags & (MSG_PEEK | MSG_ERRQUEUE)) == 0; }
// The text, if the call succeeded and the pointer is therefore known to be good.
template <class R>
constexpr const char* given(R ret, const char* text) {
  return has_failed(ret) ? nullptr : text;
}

}  // namespace dft::intercept
