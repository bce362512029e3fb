// Where the variables live that every event looks at and hardly anybody writes: next to each other,
// in a line or two of the cache, whichever room they belong to. What a program does between two
// events pushes ours out of the nearest cache, line by line.
// Declared so, they are known to be this library's own, and no table has to be asked where they
// are.
#pragma once

#define DFT_HOT [[gnu::section("dftracer_hot"), gnu::visibility("hidden")]]
