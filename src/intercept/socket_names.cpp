#include "intercept/socket_names.hpp"

#include <netinet/in.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"

namespace dft::intercept {
namespace {

// Text of limited length: what does not fit is left out.
class Text {
 public:
  Text(char* to, std::size_t room) : at_(to), begin_(to), end_(to + room) {}
  void add(std::string_view text) {
    const auto room = static_cast<std::size_t>(end_ - at_);
    const std::size_t n = text.size() < room ? text.size() : room;
    std::memcpy(at_, text.data(), n);
    at_ += n;
  }
  void add(char c) { add(std::string_view(&c, 1)); }
  void add_number(unsigned value, unsigned base = 10) {
    char digits[12];
    char* first = digits + sizeof digits;
    do *--first = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    add({first, static_cast<std::size_t>(digits + sizeof digits - first)});
  }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  char* at_;
  char* begin_;
  char* end_;
};

template <class T>
T part_of(const SocketAddress& address, std::size_t at) {
  T value;
  std::memcpy(&value, address.bytes + at, sizeof value);
  return value;
}

// An IPv4 address as IPv6 sockets show it; both are one host.
bool is_mapped(const unsigned char* address) {
  static constexpr unsigned char kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(address, kPrefix, sizeof kPrefix) == 0;
}

// The address as 16 bytes, mapped if it is IPv4.
struct Host {
  unsigned char bytes[16];
};
Host host_of(const SocketAddress& address) {
  Host host{};
  if (address.family() == AF_INET6) {
    std::memcpy(host.bytes, address.bytes + offsetof(sockaddr_in6, sin6_addr), 16);
  } else {
    host.bytes[10] = host.bytes[11] = 0xff;
    std::memcpy(host.bytes + 12, address.bytes + offsetof(sockaddr_in, sin_addr), 4);
  }
  return host;
}

void add_ipv4(Text& text, const unsigned char* bytes) {
  for (int i = 0; i < 4; ++i) {
    if (i != 0) text.add('.');
    text.add_number(bytes[i]);
  }
}

// RFC 5952: the longest run of zeros, of at least two groups, is "::".
void add_ipv6(Text& text, const unsigned char* bytes) {
  unsigned group[8];
  for (int i = 0; i < 8; ++i) group[i] = bytes[2 * i] * 256u + bytes[2 * i + 1];
  int from = 8;
  int longest = 1;
  for (int i = 0; i < 8; ++i) {
    int n = 0;
    while (i + n < 8 && group[i + n] == 0) ++n;
    if (n > longest) {
      from = i;
      longest = n;
    }
    i += n;
  }
  for (int i = 0; i < 8; ++i) {
    if (i == from) {
      text.add("::");
      i += longest - 1;
      continue;
    }
    if (i != 0 && i != from + longest) text.add(':');
    text.add_number(group[i], 16);
  }
}

void add_host(Text& text, const SocketAddress& address) {
  const Host host = host_of(address);
  if (is_mapped(host.bytes)) return add_ipv4(text, host.bytes + 12);
  text.add('[');
  add_ipv6(text, host.bytes);
  const auto scope = part_of<std::uint32_t>(address, offsetof(sockaddr_in6, sin6_scope_id));
  if (scope != 0) {
    text.add('%');
    text.add_number(scope);
  }
  text.add(']');
}

// The path of a local socket; abstract ones begin with a zero byte, shown as @, as by ss(8).
std::string_view path_of(const SocketAddress& address) {
  constexpr std::size_t kFirst = offsetof(sockaddr_un, sun_path);
  if (address.family() != AF_UNIX || address.length <= kFirst) return {};
  const char* path = reinterpret_cast<const char*>(address.bytes) + kFirst;
  const std::size_t room = address.length - kFirst;
  return {path, path[0] != '\0' ? ::strnlen(path, room) : room};
}

void add_path(Text& text, std::string_view path) {
  for (const char c : path) text.add(c == '\0' ? '@' : c);
}

// Names that the program looked up, by address. Longer names are not kept.
struct KnownHost {
  Host address;
  char name[112];
};
constexpr std::size_t kKnownHosts = 512;
Lock g_hosts_lock;
KnownHost g_hosts[kKnownHosts];

KnownHost& place_of(const Host& host) {
  std::uint64_t words[2];
  std::memcpy(words, host.bytes, sizeof words);
  return g_hosts[((words[0] ^ words[1]) * 0x9e3779b97f4a7c15u >> 32) % kKnownHosts];
}

void add_known_name(Text& text, const SocketAddress& address) {
  const Host host = host_of(address);
  const Locked locked(g_hosts_lock);
  const KnownHost& known = place_of(host);
  if (known.name[0] == '\0' || std::memcmp(known.address.bytes, host.bytes, 16) != 0) return;
  text.add(std::string_view(known.name));
  text.add('/');
}

// A name as they are in use; anything else is not shown.
bool is_host_name(const char* name, std::size_t most) {
  bool has_letter = false;
  std::size_t n = 0;
  for (; n < most && name[n] != '\0'; ++n) {
    const char c = name[n];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    has_letter |= letter;
    if (!letter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_') return false;
  }
  return has_letter && n < most;
}

std::string_view scheme_of(int type) {
  switch (type) {
    case SOCK_STREAM:
      return "tcp";
    case SOCK_DGRAM:
      return "udp";
    case SOCK_SEQPACKET:
      return "sctp";
    default:
      return "raw";
  }
}

// Ports that the kernel gives to the side that connects, where nothing else is configured.
constexpr int kFirstEphemeral = 32768;

bool was_accepted(const SocketFacts& facts) {
  if (facts.side != Side::kUnknown) return facts.side == Side::kAccepted;
  return facts.peer.port() >= kFirstEphemeral && facts.local.port() < kFirstEphemeral;
}

void finish(SocketName& name, Text& text, int fd) {
  name.bare = text.size();
  text.add('#');
  text.add_number(static_cast<unsigned>(fd));
}

SocketName name_inet(const SocketFacts& facts, int fd, Text& text) {
  SocketName name;
  const auto ends_at = [&text](const SocketAddress& address) {
    add_host(text, address);
    text.add(':');
    text.add_number(static_cast<unsigned>(address.port()));
  };
  text.add(scheme_of(facts.type));
  if (facts.listens) {
    text.add("-listen://");
    ends_at(facts.local);
  } else if (facts.peer.length != 0 && was_accepted(facts)) {
    text.add("-from://");
    add_known_name(text, facts.peer);
    add_host(text, facts.peer);
    text.add("->:");
    text.add_number(static_cast<unsigned>(facts.local.port()));
    finish(name, text, fd);
  } else if (facts.peer.length != 0) {
    text.add("://");
    add_known_name(text, facts.peer);
    ends_at(facts.peer);
    finish(name, text, fd);
  } else if (facts.local.port() != 0) {
    text.add("-bound://");
    ends_at(facts.local);
    finish(name, text, fd);
    name.peers = Peers::kHere;
  } else {
    text.add(":unconnected");
    name.peers = Peers::kThere;
  }
  name.length = text.size();
  if (name.bare == 0) name.bare = name.length;
  return name;
}

SocketName name_local(const SocketFacts& facts, std::string_view known, int fd, Text& text) {
  SocketName name;
  const std::string_view here = path_of(facts.local);
  const std::string_view there = path_of(facts.peer);
  if (facts.listens) {
    text.add("unix-listen:");
    add_path(text, here);
  } else if (!there.empty()) {
    text.add("unix:");
    add_path(text, there);
    finish(name, text, fd);
  } else if (facts.peer.length != 0 && !here.empty()) {
    text.add("unix-from:");
    add_path(text, here);
    finish(name, text, fd);
  } else if (facts.peer.length != 0) {
    text.add("socketpair");
    text.add(known.substr(known.find(':') < known.size() ? known.find(':') : 0));
  } else if (!here.empty()) {
    text.add("unix-bound:");
    add_path(text, here);
    finish(name, text, fd);
    name.peers = Peers::kHere;
  } else {
    text.add("unix:unconnected");
    name.peers = Peers::kThere;
  }
  name.length = text.size();
  if (name.bare == 0) name.bare = name.length;
  return name;
}

int option(int fd, int which) {
  int value = 0;
  socklen_t size = sizeof value;
  return sys::call(SYS_getsockopt, fd, SOL_SOCKET, which, &value, &size) == 0 ? value : 0;
}

SocketAddress ask(long number, int fd) {
  SocketAddress address{};
  socklen_t size = sizeof address.bytes;
  if (sys::call(number, fd, address.bytes, &size) == 0)
    address.length = size < sizeof address.bytes ? size : sizeof address.bytes;
  return address;
}

}  // namespace

constinit std::atomic<std::uint32_t> g_host_changes{0};

SocketAddress SocketAddress::of(const void* address, std::size_t size) noexcept {
  SocketAddress copy{};
  if (address == nullptr || size < sizeof(sa_family_t)) return copy;
  if (size > sizeof copy.bytes) size = sizeof copy.bytes;
  std::memcpy(copy.bytes, address, size);
  copy.length = static_cast<socklen_t>(size);
  return copy;
}

SocketAddress SocketAddress::tried(const void* address, std::size_t size) noexcept {
  SocketAddress copy{};
  if (address == nullptr || size < sizeof(sa_family_t) || size > sizeof copy.bytes) return copy;
  const iovec to{copy.bytes, size};
  const iovec from{const_cast<void*>(address), size};
  if (sys::call(SYS_process_vm_readv, sys::process_id(), &to, 1, &from, 1, 0) ==
      static_cast<long>(size))
    copy.length = static_cast<socklen_t>(size);
  return copy;
}

SocketAddress SocketAddress::local_of(int fd) noexcept { return ask(SYS_getsockname, fd); }
SocketAddress SocketAddress::peer_of(int fd) noexcept { return ask(SYS_getpeername, fd); }

int SocketAddress::family() const noexcept {
  return length >= sizeof(sa_family_t) ? part_of<sa_family_t>(*this, 0) : AF_UNSPEC;
}

bool SocketAddress::is_inet() const noexcept {
  return (family() == AF_INET && length >= sizeof(sockaddr_in)) ||
         (family() == AF_INET6 && length >= offsetof(sockaddr_in6, sin6_scope_id));
}

// Both families have it at the same place.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

int SocketAddress::port() const noexcept {
  constexpr std::size_t kAt = offsetof(sockaddr_in, sin_port);
  return is_inet() ? bytes[kAt] * 256 + bytes[kAt + 1] : 0;
}

void SocketAddress::drop_port() noexcept {
  constexpr std::size_t kAt = offsetof(sockaddr_in, sin_port);
  if (is_inet()) bytes[kAt] = bytes[kAt + 1] = 0;
}

int type_of_socket(int fd) noexcept { return option(fd, SO_TYPE); }

SocketFacts facts_of(int fd) noexcept {
  SocketFacts facts;
  facts.type = type_of_socket(fd);
  facts.listens = option(fd, SO_ACCEPTCONN) != 0;
  facts.peer = SocketAddress::peer_of(fd);
  facts.local = SocketAddress::local_of(fd);
  return facts;
}

SocketName name_socket(const SocketFacts& facts, std::string_view known, int fd,
                       char* to) noexcept {
  Text text(to, kLongestSocketName);
  const SocketAddress& end = facts.peer.length != 0 ? facts.peer : facts.local;
  if (end.is_inet()) return name_inet(facts, fd, text);
  if (end.family() == AF_UNIX) return name_local(facts, known, fd, text);
  text.add(known);
  return {text.size(), text.size(), Peers::kNone};
}

void print_host(const SocketAddress& address, char* to) noexcept {
  Text text(to, 63);
  if (address.is_inet()) add_host(text, address);
  to[text.size()] = '\0';
}

void remember_host(const char* name, const SocketAddress& address) noexcept {
  if (name == nullptr || !address.is_inet() || !is_host_name(name, sizeof(KnownHost::name))) return;
  const Host host = host_of(address);
  const SlowPath slow;
  const Locked locked(g_hosts_lock);
  KnownHost& known = place_of(host);
  if (std::memcmp(known.address.bytes, host.bytes, 16) == 0 && std::strcmp(known.name, name) == 0)
    return;
  known.address = host;
  std::strcpy(known.name, name);  // NOLINT: is_host_name has measured it
  g_host_changes.fetch_add(1, std::memory_order_release);
}

}  // namespace dft::intercept
