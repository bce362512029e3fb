// What the core library shows to others: everything else is hidden (exports.map).
#pragma once

#define DFT_EXPORT extern "C" __attribute__((visibility("default")))
