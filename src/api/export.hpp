// Marks the functions that the core library exports; everything else is hidden (exports.map).
#pragma once

#define DFT_EXPORT extern "C" __attribute__((visibility("default")))
