/* The functions of older releases, by name; C99 and C++11. */
#include <dftracer/dftracer.h>
#include <stddef.h>

int main(void) {
  int rank = 5;
  struct DFTracerData* region;
  struct DFTracerData* scoped;
  struct DFTracerData* none = NULL;
  initialize_main("t.pfw", NULL, &rank);
  initialize_no_bind(NULL, NULL, NULL);
  region = initialize_region("old", "OLD_APP", DF_DATA_EVENT);
  update_metadata_int(region, "int", 4);
  update_metadata_string(region, "text", "four");
  update_metadata_int_type(region, "typed_int", 5, DFTRACER_TAG_VALUE);
  update_metadata_string_type(region, "typed_text", "five", DFTRACER_TAG_VALUE);
  scoped = initialize_region("scoped", "OLD_APP", DF_DATA_EVENT);
  finalize_region_cleanup(&scoped);
  finalize_region_cleanup(&scoped);
  finalize_region(region);
  region = initialize_region("not an event", "OLD_APP", DF_METADATA_EVENT);
  update_metadata_int(region, "int", 4);
  finalize_region(region);
  finalize_region(initialize_region(NULL, NULL, DF_DATA_EVENT));
  update_metadata_int(NULL, "int", 1);
  update_metadata_string(NULL, NULL, NULL);
  finalize_region(NULL);
  finalize_region_cleanup(NULL);
  finalize_region_cleanup(&none);
  set_app_metadata_int("app_int", -2147483647 - 1);
  set_app_metadata_string("app_text", "text");
  mark_used("a layer");
  finalize();
  finalize();
  finalize();
  return scoped == NULL ? 0 : 1;
}
