#include <stdio.h>

#include "sum.h"

int main(void) {
  printf("%s %d\n", text(), sum(table, 5));
  return 0;
}
