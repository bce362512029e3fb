// DFT_HOT groups the variables that every event reads and few code paths write. They share one or
// two cache lines, because the program evicts our lines from L1 between two events.
// Hidden visibility: accessed PC-relative, without a GOT load. Used by all rooms.
#pragma once

#define DFT_HOT [[gnu::section("dftracer_hot"), gnu::visibility("hidden")]]
