// Shared by the wrappers of the socket functions and those of the same calls made through
// syscall(): calls that give a socket its peer, or that name one.
#pragma once
#include <sys/socket.h>

#include "intercept/wrap_macros.hpp"

namespace dft::intercept {
namespace {

// The connection is made, or being made: a socket that does not block says EINPROGRESS, and one
// that a signal interrupts goes on by itself.
constexpr bool has_begun(int error) { return error == EINPROGRESS || error == EINTR; }

inline OptionalArg port_of(Key key, const SocketAddress& address) {
  return {key, address.is_inet(), address.port()};
}

// What the probes of this file have in common, after the call.
template <Row row, class R, class... F>
[[gnu::always_inline]] inline void record_net(buffer::ThreadState& t, File* file, int fd,
                                              std::uint64_t start, std::uint64_t end, R ret,
                                              const F&... fields) {
  if (!file->traced) {
    count_filtered(t, moves_nothing());
    return;
  }
  count_call(t, moves_nothing());
  record_call<row>(t, file, fd, start, end, ret, fields...);
}

template <Row row, class Call>
[[gnu::always_inline]] inline auto connect_call(int fd, const void* address, socklen_t length,
                                                Call call) {
  buffer::ThreadState* t = watch(Category::NET);
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  const int error = has_failed(ret) ? reason<row>() : 0;
  const bool connects = error == 0 || has_begun(error);
  if (t == nullptr) {
    if (connects) set_file_of(fd, nullptr);
    return ret;
  }
  SocketFacts facts;
  facts.side = Side::kConnecting;
  facts.peer =
      error == 0 ? SocketAddress::of(address, length) : SocketAddress::tried(address, length);
  File* file = nullptr;
  if (connects && facts.peer.family() != AF_UNSPEC) {
    facts.type = type_of_socket(fd);
    facts.local = SocketAddress::local_of(fd);
    file = name_connection(fd, facts);
  } else {
    // AF_UNSPEC takes the peer away.
    if (connects) set_file_of(fd, nullptr);
    file = file_of(fd);
    if (!connects && file->traced && facts.peer.length != 0 && error != EBADF && error != ENOTSOCK)
      file = file_of_peer(fd, *file, facts.peer);
  }
  record_net<row>(*t, file, fd, start, end, ret, port_of(Key::local_port, facts.local));
  return ret;
}

template <Row row, class Call, class... F>
[[gnu::always_inline]] inline auto accept_call(int fd, Call call, F... fields) {
  buffer::ThreadState* t = watch(Category::NET);
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  if (t == nullptr) {
    if (!has_failed(ret)) set_file_of(static_cast<int>(ret), nullptr);
    return ret;
  }
  SocketFacts facts;
  File* file = nullptr;
  if (has_failed(ret)) {
    file = file_of(fd);
  } else {
    const int accepted = static_cast<int>(ret);
    facts.side = Side::kAccepted;
    facts.type = SOCK_STREAM;
    facts.peer = SocketAddress::peer_of(accepted);
    facts.local = SocketAddress::local_of(accepted);
    file = name_connection(accepted, facts);
  }
  record_net<row>(*t, file, fd, start, end, ret, port_of(Key::peer_port, facts.peer),
                  fields(ret)...);
  return ret;
}

// A call after which the socket is called something else.
template <Row row, class Call, class... F>
[[gnu::always_inline]] inline auto rename_call(int fd, Call call, F... fields) {
  buffer::ThreadState* t = watch(Category::NET);
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  if (!has_failed(ret)) set_file_of(fd, nullptr);
  if (t == nullptr) return ret;
  record_net<row>(*t, file_of(fd), fd, start, end, ret, fields(ret)...);
  return ret;
}

// A call that may name its peer: `peer` reads the address, which the kernel has accepted.
template <Row row, class Call, class Peer, class... F>
[[gnu::always_inline]] inline auto message_call(int fd, Call call, Peer peer, F... fields) {
  buffer::ThreadState* t = watch(Category::NET);
  if (t == nullptr) [[unlikely]]
    return call();
  File* file = file_of(fd);
  const std::uint64_t start = record::ticks();
  const auto ret = call();
  const std::uint64_t end = record::ticks();
  if (file->peers != Peers::kNone && file->traced && !has_failed(ret)) {
    const SocketAddress address = peer();
    if (address.length > sizeof(sa_family_t)) file = file_of_peer(fd, *file, address);
  }
  record_net<row>(*t, file, fd, start, end, ret, fields(ret)...);
  return ret;
}

inline SocketAddress address_of(const msghdr* message) {
  return SocketAddress::of(message->msg_name, message->msg_namelen);
}
inline SocketAddress address_of(const void* address, const socklen_t* length) {
  if (address == nullptr || length == nullptr) return {};
  return SocketAddress::of(address, *length);
}

}  // namespace
}  // namespace dft::intercept
