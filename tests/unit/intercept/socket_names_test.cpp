#include "intercept/socket_names.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <string>

using namespace dft::intercept;

namespace {

SocketAddress ipv4(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(inet_pton(AF_INET, host, &address.sin_addr) == 1);
  return SocketAddress::of(&address, sizeof address);
}

SocketAddress ipv6(const char* host, int port, unsigned scope = 0) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  address.sin6_scope_id = scope;
  REQUIRE(inet_pton(AF_INET6, host, &address.sin6_addr) == 1);
  return SocketAddress::of(&address, sizeof address);
}

SocketAddress local(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return SocketAddress::of(&address, offsetof(sockaddr_un, sun_path) + path.size());
}

struct Named {
  std::string text;
  std::string bare;
  Peers peers;
};
Named name(const SocketFacts& facts, int fd = 7) {
  char text[kLongestSocketName];
  const SocketName got = name_socket(facts, "socket:[99]", fd, text);
  return {{text, got.length}, {text, got.bare}, got.peers};
}
std::string printed(const SocketAddress& address) {
  char text[64];
  print_host(address, text);
  return text;
}

}  // namespace

TEST_CASE("sockets: a connection is named after its peer and its descriptor") {
  SocketFacts facts;
  facts.type = SOCK_STREAM;
  facts.side = Side::kConnecting;
  facts.peer = ipv4("10.0.0.1", 443);
  facts.local = ipv4("10.0.0.2", 50000);
  CHECK(name(facts).text == "tcp://10.0.0.1:443#7");
  CHECK(name(facts).bare == "tcp://10.0.0.1:443");
  facts.peer = ipv6("2001:db8::1", 443);
  CHECK(name(facts, 1000000).text == "tcp://[2001:db8::1]:443#1000000");
  facts.type = SOCK_DGRAM;
  CHECK(name(facts).text == "udp://[2001:db8::1]:443#7");
}

TEST_CASE("sockets: one that was accepted is named after the host and the own port") {
  SocketFacts facts;
  facts.type = SOCK_STREAM;
  facts.side = Side::kAccepted;
  facts.peer = ipv4("10.0.0.9", 34567);
  facts.local = ipv4("10.0.0.1", 8080);
  CHECK(name(facts).text == "tcp-from://10.0.0.9->:8080#7");
  facts.side = Side::kUnknown;  // inherited: the ports tell
  CHECK(name(facts).text == "tcp-from://10.0.0.9->:8080#7");
  facts.peer = ipv4("10.0.0.9", 443);
  CHECK(name(facts).text == "tcp://10.0.0.9:443#7");
}

TEST_CASE("sockets: without a peer") {
  SocketFacts facts;
  facts.type = SOCK_STREAM;
  facts.local = ipv4("0.0.0.0", 0);
  CHECK(name(facts).text == "tcp:unconnected");
  CHECK(name(facts).peers == Peers::kThere);
  facts.local = ipv4("0.0.0.0", 8080);
  facts.listens = true;
  CHECK(name(facts).text == "tcp-listen://0.0.0.0:8080");
  CHECK(name(facts).peers == Peers::kNone);
  facts.listens = false;
  facts.type = SOCK_DGRAM;
  CHECK(name(facts).text == "udp-bound://0.0.0.0:8080#7");
  CHECK(name(facts).peers == Peers::kHere);
  CHECK(name({}).text == "socket:[99]");
}

TEST_CASE("sockets: local ones, also with hostile names") {
  using namespace std::string_view_literals;
  SocketFacts facts;
  facts.type = SOCK_STREAM;
  facts.peer = local("/run/x.sock"sv);
  facts.local = local(""sv);
  CHECK(name(facts).text == "unix:/run/x.sock#7");
  facts.peer = local("\0a\0b"sv);
  CHECK(name(facts).text == "unix:@a@b#7");
  facts.peer = local(""sv);
  CHECK(name(facts).text == "socketpair:[99]");
  facts.local = local("/run/x.sock\0\0"sv);
  CHECK(name(facts).text == "unix-from:/run/x.sock#7");
  facts.peer = {};
  CHECK(name(facts).text == "unix-bound:/run/x.sock#7");
  const std::string longest(sizeof(sockaddr_un::sun_path), 'p');  // without a zero at its end
  facts.local = local(longest);
  facts.listens = true;
  CHECK(name(facts).text == "unix-listen:" + longest);
}

TEST_CASE("sockets: addresses are written as RFC 5952 says") {
  CHECK(printed(ipv6("::", 1)) == "[::]");
  CHECK(printed(ipv6("::1", 1)) == "[::1]");
  CHECK(printed(ipv6("fe80::1:0:0:1", 1, 3)) == "[fe80::1:0:0:1%3]");
  CHECK(printed(ipv6("2001:db8:0:1:1:1:1:1", 1)) == "[2001:db8:0:1:1:1:1:1]");
  CHECK(printed(ipv6("1:0:0:2:0:0:0:3", 1)) == "[1:0:0:2::3]");
  CHECK(printed(ipv6("1:2:3:4:5:6::", 1)) == "[1:2:3:4:5:6::]");
  CHECK(printed(ipv6("::ffff:10.1.2.3", 1)) == "10.1.2.3");
  CHECK(printed(ipv4("255.255.255.255", 1)) == "255.255.255.255");
  CHECK(printed({}).empty());
}

TEST_CASE("sockets: a peer is shown with the name that was looked up for it") {
  SocketFacts facts;
  facts.type = SOCK_STREAM;
  facts.side = Side::kConnecting;
  facts.peer = ipv4("192.0.2.77", 443);
  const std::uint32_t before = g_host_changes.load();
  remember_host("s3.example.com", ipv4("192.0.2.77", 0));
  remember_host("s3.example.com", ipv6("::ffff:192.0.2.77", 0));
  CHECK(g_host_changes.load() == before + 1);
  CHECK(name(facts).text == "tcp://s3.example.com/192.0.2.77:443#7");
  remember_host("evil name\n", facts.peer);
  remember_host("192.0.2.77", facts.peer);
  remember_host(std::string(300, 'a').c_str(), facts.peer);
  remember_host(nullptr, facts.peer);
  CHECK(name(facts).text == "tcp://s3.example.com/192.0.2.77:443#7");
  remember_host("other.example.com", facts.peer);
  CHECK(name(facts).text == "tcp://other.example.com/192.0.2.77:443#7");
}

TEST_CASE("sockets: an address that cannot be read is none") {
  CHECK(SocketAddress::tried(reinterpret_cast<const void*>(16), 16).length == 0);
  CHECK(SocketAddress::tried(nullptr, 16).length == 0);
  const SocketAddress good = ipv4("10.0.0.1", 5);
  CHECK(SocketAddress::tried(good.bytes, 16).port() == 5);
  CHECK(SocketAddress::of(good.bytes, 1).length == 0);
  // One that is cut off in the middle is not read further.
  CHECK_FALSE(SocketAddress::of(good.bytes, 4).is_inet());
}
