// What a socket is called in a trace: its peer, and how they came together (docs/interception.md
// lists the forms). Used by file_table.cpp and wrap_net.cpp, on the slow path.
#pragma once
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dft::intercept {

// One end of a connection, as the kernel gives it; `length` 0: there is none.
struct SocketAddress {
  alignas(sockaddr_storage) unsigned char bytes[sizeof(sockaddr_storage)];
  socklen_t length;

  // Of `size` bytes that can be read.
  static SocketAddress of(const void* address, std::size_t size) noexcept;
  // Of bytes that the kernel may not have accepted: fails where a plain read would crash.
  static SocketAddress tried(const void* address, std::size_t size) noexcept;
  static SocketAddress local_of(int fd) noexcept;
  static SocketAddress peer_of(int fd) noexcept;

  [[nodiscard]] int family() const noexcept;
  [[nodiscard]] bool is_inet() const noexcept;
  [[nodiscard]] int port() const noexcept;  // 0 for those that have none
  void drop_port() noexcept;
};

enum class Side : std::uint8_t { kUnknown, kConnecting, kAccepted };

struct SocketFacts {
  int type = 0;  // SOCK_STREAM and so on
  bool listens = false;
  Side side = Side::kUnknown;
  SocketAddress peer = {};
  SocketAddress local = {};
};
SocketFacts facts_of(int fd) noexcept;
int type_of_socket(int fd) noexcept;

// Whose address calls on a socket that is not connected may give, and which side that is.
enum class Peers : std::uint8_t { kNone, kThere, kHere };

struct SocketName {
  std::size_t length = 0;
  std::size_t bare = 0;  // without the number of the descriptor, which keeps connections apart
  Peers peers = Peers::kNone;
};
inline constexpr std::size_t kLongestSocketName = 512;
// `known` is the kernel's name for it ("socket:[7]"), which stays where there is no better one.
SocketName name_socket(const SocketFacts& facts, std::string_view known, int fd, char* to) noexcept;

// The text of an address without its port, ended by a zero byte. Needs room for 64 bytes.
void print_host(const SocketAddress& address, char* to) noexcept;

// The program has looked up `name` and got this address: peers are shown with the name. A bounded
// table; the last name of an address counts.
void remember_host(const char* name, const SocketAddress& address) noexcept;
// Counts the changes of that table.
extern std::atomic<std::uint32_t> g_host_changes;

}  // namespace dft::intercept
