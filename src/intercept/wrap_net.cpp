// Wrappers written by hand: calls that give a socket its peer or name one, and those that look up
// hosts, whose names peers are shown with.
#include "intercept/wrap_net.hpp"

#include <netdb.h>
#include <netinet/in.h>

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp

// A socket is named at its first use: programs set options before they connect.
extern "C" int DFT_WRAPPER(socket)(int domain, int type, int protocol) {
  const int result =
      DFT_PROBE(NET, socket, int, (int, int, int), (domain, type, protocol), on_unnamed(),
                moves_nothing(), DFT_NUM(domain), DFT_NUM(type), DFT_NUM(protocol));
  if (result >= 0) set_file_of(result, nullptr);
  return result;
}
extern "C" int DFT_WRAPPER(socketpair)(int domain, int type, int protocol, int* fds) {
  const int result =
      DFT_PROBE(NET, socketpair, int, (int, int, int, int*), (domain, type, protocol, fds),
                on_unnamed(), moves_nothing(), DFT_NUM(domain), DFT_NUM(type), DFT_NUM(protocol));
  if (result == 0) {
    set_file_of(fds[0], nullptr);
    set_file_of(fds[1], nullptr);
  }
  return result;
}

extern "C" int DFT_WRAPPER(bind)(int fd, const sockaddr* address, socklen_t length) {
  return rename_call<Row::bind>(fd, [&] {
    return real<int(int, const sockaddr*, socklen_t)>(Row::bind)(fd, address, length);
  });
}
extern "C" int DFT_WRAPPER(listen)(int fd, int backlog) {
  return rename_call<Row::listen>(
      fd, [&] { return real<int(int, int)>(Row::listen)(fd, backlog); }, DFT_NUM(backlog));
}
extern "C" int DFT_WRAPPER(accept)(int fd, sockaddr* address, socklen_t* length) {
  return accept_call<Row::accept>(
      fd, [&] { return real<int(int, sockaddr*, socklen_t*)>(Row::accept)(fd, address, length); });
}
extern "C" int DFT_WRAPPER(accept4)(int fd, sockaddr* address, socklen_t* length, int flags) {
  return accept_call<Row::accept4>(
      fd,
      [&] {
        return real<int(int, sockaddr*, socklen_t*, int)>(Row::accept4)(fd, address, length, flags);
      },
      DFT_NUM(flags));
}
#define DFT_CONNECT(symbol)                                                                \
  extern "C" int DFT_WRAPPER(symbol)(int fd, const sockaddr* address, socklen_t length) {  \
    return connect_call<Row::symbol>(fd, address, length, [&] {                            \
      return real<int(int, const sockaddr*, socklen_t)>(Row::symbol)(fd, address, length); \
    });                                                                                    \
  }
DFT_CONNECT(connect)
DFT_CONNECT(__connect)

// ---- Messages

extern "C" ssize_t DFT_WRAPPER(sendto)(int fd, const void* buf, size_t len, int flags,
                                       const sockaddr* address, socklen_t length) {
  return message_call<Row::sendto>(
      fd,
      [&] {
        return real<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)>(
            Row::sendto)(fd, buf, len, flags, address, length);
      },
      [&] { return SocketAddress::of(address, length); }, DFT_NUM(len), DFT_NUM(flags));
}
extern "C" ssize_t DFT_WRAPPER(sendmsg)(int fd, const msghdr* message, int flags) {
  return message_call<Row::sendmsg>(
      fd, [&] { return real<ssize_t(int, const msghdr*, int)>(Row::sendmsg)(fd, message, flags); },
      [&] { return address_of(message); }, DFT_NUM(flags));
}
extern "C" ssize_t DFT_WRAPPER(recvfrom)(int fd, void* buf, size_t len, int flags,
                                         sockaddr* address, socklen_t* length) {
  return message_call<Row::recvfrom>(
      fd,
      [&] {
        return real<ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)>(Row::recvfrom)(
            fd, buf, len, flags, address, length);
      },
      [&] { return address_of(address, length); }, DFT_NUM(len), DFT_NUM(flags));
}
extern "C" ssize_t DFT_WRAPPER(__recvfrom_chk)(int fd, void* buf, size_t len, size_t room,
                                               int flags, sockaddr* address, socklen_t* length) {
  return message_call<Row::__recvfrom_chk>(
      fd,
      [&] {
        return real<ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)>(
            Row::__recvfrom_chk)(fd, buf, len, room, flags, address, length);
      },
      [&] { return address_of(address, length); }, DFT_NUM(len), DFT_NUM(flags));
}
extern "C" ssize_t DFT_WRAPPER(recvmsg)(int fd, msghdr* message, int flags) {
  return message_call<Row::recvmsg>(
      fd, [&] { return real<ssize_t(int, msghdr*, int)>(Row::recvmsg)(fd, message, flags); },
      [&] { return address_of(message); }, DFT_NUM(flags));
}

// ---- Names of hosts. The result is libc's own memory, or memory that it has just filled.

namespace {

// Errors that come after libc has read the name.
const char* asked(int ret, const char* node) {
  switch (ret) {
    case 0:
    case EAI_NONAME:
    case EAI_AGAIN:
    case EAI_FAIL:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
      return node;
    default:
      return nullptr;
  }
}

void remember(const char* name, const hostent* found) {
  if (found == nullptr || watch(Category::NET) == nullptr) return;
  for (char** address = found->h_addr_list; *address != nullptr; ++address) {
    if (found->h_addrtype == AF_INET) {
      sockaddr_in known{};
      known.sin_family = AF_INET;
      std::memcpy(&known.sin_addr, *address, sizeof known.sin_addr);
      remember_host(name, SocketAddress::of(&known, sizeof known));
    } else if (found->h_addrtype == AF_INET6) {
      sockaddr_in6 known{};
      known.sin6_family = AF_INET6;
      std::memcpy(&known.sin6_addr, *address, sizeof known.sin6_addr);
      remember_host(name, SocketAddress::of(&known, sizeof known));
    }
  }
}

// The text of an address that was looked up, in memory of the wrapper.
using HostText = char[64];
const char* printed(HostText& to, const void* given, std::size_t length) {
  print_host(SocketAddress::of(given, length), to);
  return to;
}
const char* printed(HostText& to, const void* bytes, std::size_t length, int type) {
  if (type == AF_INET && length >= sizeof(in_addr)) {
    sockaddr_in given{};
    given.sin_family = AF_INET;
    std::memcpy(&given.sin_addr, bytes, sizeof given.sin_addr);
    return printed(to, &given, sizeof given);
  }
  if (type == AF_INET6 && length >= sizeof(in6_addr)) {
    sockaddr_in6 given{};
    given.sin6_family = AF_INET6;
    std::memcpy(&given.sin6_addr, bytes, sizeof given.sin6_addr);
    return printed(to, &given, sizeof given);
  }
  return nullptr;
}

}  // namespace

extern "C" int DFT_WRAPPER(getaddrinfo)(const char* node, const char* service,
                                        const addrinfo* hints, addrinfo** found) {
  const int result =
      DFT_PROBE(NET, getaddrinfo, int, (const char*, const char*, const addrinfo*, addrinfo**),
                (node, service, hints, found), on_unnamed(), moves_nothing(),
                DFT_STR(name, asked(ret, node)));
  if (result == 0 && node != nullptr && watch(Category::NET) != nullptr) {
    for (const addrinfo* one = *found; one != nullptr; one = one->ai_next)
      remember_host(node, SocketAddress::of(one->ai_addr, one->ai_addrlen));
  }
  return result;
}

#define DFT_STATUS DFT_NUM_AS(status, ret != nullptr ? 0 : -1)
extern "C" hostent* DFT_WRAPPER(gethostbyname)(const char* name) {
  hostent* found = DFT_PROBE(NET, gethostbyname, hostent*, (const char*), (name), on_unnamed(),
                             moves_nothing(), DFT_STR(name, name), DFT_STATUS);
  remember(name, found);
  return found;
}
extern "C" hostent* DFT_WRAPPER(gethostbyname2)(const char* name, int family) {
  hostent* found = DFT_PROBE(NET, gethostbyname2, hostent*, (const char*, int), (name, family),
                             on_unnamed(), moves_nothing(), DFT_STR(name, name), DFT_STATUS);
  remember(name, found);
  return found;
}
extern "C" int DFT_WRAPPER(gethostbyname_r)(const char* name, hostent* entry, char* buf,
                                            size_t room, hostent** found, int* error) {
  const int result =
      DFT_PROBE(NET, gethostbyname_r, int, (const char*, hostent*, char*, size_t, hostent**, int*),
                (name, entry, buf, room, found, error), on_unnamed(), moves_nothing(),
                DFT_STR(name, name), DFT_NUM_AS(status, *found != nullptr ? 0 : -1));
  remember(name, result == 0 ? *found : nullptr);
  return result;
}
extern "C" int DFT_WRAPPER(gethostbyname2_r)(const char* name, int family, hostent* entry,
                                             char* buf, size_t room, hostent** found, int* error) {
  const int result = DFT_PROBE(
      NET, gethostbyname2_r, int, (const char*, int, hostent*, char*, size_t, hostent**, int*),
      (name, family, entry, buf, room, found, error), on_unnamed(), moves_nothing(),
      DFT_STR(name, name), DFT_NUM_AS(status, *found != nullptr ? 0 : -1));
  remember(name, result == 0 ? *found : nullptr);
  return result;
}
extern "C" hostent* DFT_WRAPPER(gethostbyaddr)(const void* address, socklen_t length, int type) {
  HostText text;
  return DFT_PROBE(NET, gethostbyaddr, hostent*, (const void*, socklen_t, int),
                   (address, length, type), on_unnamed(), moves_nothing(),
                   DFT_STR(name, ret != nullptr ? printed(text, address, length, type) : nullptr),
                   DFT_STATUS);
}
extern "C" int DFT_WRAPPER(gethostbyaddr_r)(const void* address, socklen_t length, int type,
                                            hostent* entry, char* buf, size_t room, hostent** found,
                                            int* error) {
  HostText text;
  return DFT_PROBE(NET, gethostbyaddr_r, int,
                   (const void*, socklen_t, int, hostent*, char*, size_t, hostent**, int*),
                   (address, length, type, entry, buf, room, found, error), on_unnamed(),
                   moves_nothing(),
                   DFT_STR(name, ret == 0 ? printed(text, address, length, type) : nullptr),
                   DFT_NUM_AS(status, *found != nullptr ? 0 : -1));
}
extern "C" int DFT_WRAPPER(getnameinfo)(const sockaddr* address, socklen_t length, char* host,
                                        socklen_t host_room, char* service, socklen_t service_room,
                                        int flags) {
  HostText text;
  return DFT_PROBE(
      NET, getnameinfo, int, (const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int),
      (address, length, host, host_room, service, service_room, flags), on_unnamed(),
      moves_nothing(), DFT_STR(name, ret == 0 ? printed(text, address, length) : nullptr));
}
