/* recover DIRECTORY [force]: prints what dftracer_recover returned and found. */
#include "faults.h"

int main(int argc, char** argv) {
  dftracer_recovery found;
  memset(&found, 0, sizeof found);
  const int code = dftracer_recover(argv[1], argc > 2, &found);
  print("%d %llu %llu %llu %llu %llu %llu", code, (unsigned long long)found.spools,
        (unsigned long long)found.recovered, (unsigned long long)found.events,
        (unsigned long long)found.alive, (unsigned long long)found.unknown,
        (unsigned long long)found.broken);
  return code == 0 && found.broken == 0 ? 0 : 1;
}
