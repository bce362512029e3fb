#include "reader/stats/call_bytes.hpp"

#include <doctest/doctest.h>

using dft::reader::is_no_file;

TEST_CASE("bytes: sockets and pipes are no files") {
  for (const char* name :
       {"pipe:[7]", "socket:[7]", "socketpair:[7]", "anon_inode:[eventfd]", "tcp://10.0.0.1:443#5",
        "tcp-from://10.0.0.9->:80#7", "tcp-listen://0.0.0.0:80", "udp://[::1]:53#4",
        "tcp:unconnected", "unix:/run/x.sock#3", "unix-from:@a#3", "raw://10.0.0.1:0#3",
        "sctp://10.0.0.1:5#3"})
    CHECK_MESSAGE(is_no_file(name), name);
  for (const char* name : {"/data/tcp://x", "/data/a", "tcp", "tcpdump:1", "tcp-:x", "tcp-1:x",
                           "http://host/key", "s3://bucket/key", "unixes:/x", ""})
    CHECK_MESSAGE(!is_no_file(name), name);
}
