# Both are looked for directly instead of through pkg-config, so that a build needs one tool less.
find_package(Threads REQUIRED)

find_path(ISAL_INCLUDE_DIR isa-l/igzip_lib.h)
find_library(ISAL_LIBRARY NAMES isal)
if(NOT ISAL_INCLUDE_DIR OR NOT ISAL_LIBRARY)
  message(FATAL_ERROR "ISA-L was not found: install the Debian package libisal-dev.")
endif()

find_path(YAML_INCLUDE_DIR yaml.h)
find_library(YAML_LIBRARY NAMES libyaml.a)
if(NOT YAML_INCLUDE_DIR OR NOT YAML_LIBRARY)
  message(FATAL_ERROR "libyaml.a was not found: install the Debian package libyaml-dev.")
endif()

add_library(dftracer_isal UNKNOWN IMPORTED)
set_target_properties(dftracer_isal PROPERTIES
  IMPORTED_LOCATION ${ISAL_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${ISAL_INCLUDE_DIR})

add_library(dftracer_yaml STATIC IMPORTED)
set_target_properties(dftracer_yaml PROPERTIES
  IMPORTED_LOCATION ${YAML_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${YAML_INCLUDE_DIR}
  INTERFACE_COMPILE_DEFINITIONS YAML_DECLARE_STATIC)

# Debian ships ISA-L only as a shared library. A copy goes next to ours, under the name that the loader
# will ask for, so that an installed tree or a wheel also runs where the package is missing.
set(DFTRACER_ISAL_BUNDLE "")
if(ISAL_LIBRARY MATCHES "\\.so")
  file(REAL_PATH ${ISAL_LIBRARY} isal_file)
  execute_process(COMMAND ${CMAKE_READELF} -d ${isal_file}
    OUTPUT_VARIABLE isal_dynamic RESULT_VARIABLE isal_failed ERROR_QUIET)
  if(isal_failed OR NOT isal_dynamic MATCHES "SONAME[^[]*\\[([^]]+)\\]")
    message(FATAL_ERROR "No SONAME in ${isal_file}: install the Debian packages libisal-dev and binutils.")
  endif()
  set(DFTRACER_ISAL_SONAME ${CMAKE_MATCH_1})
  set(DFTRACER_ISAL_BUNDLE ${isal_file})
endif()

if(DFTRACER_BUILD_TESTS)
  find_path(DOCTEST_INCLUDE_DIR doctest/doctest.h)
  if(NOT DOCTEST_INCLUDE_DIR)
    message(FATAL_ERROR "doctest was not found: install the Debian package doctest-dev.")
  endif()
endif()
