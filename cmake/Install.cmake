include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dftracer)

install(TARGETS dftracer_core dftracer_inject EXPORT dftracer-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET dftracer_preload)
  install(TARGETS dftracer_preload EXPORT dftracer-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
# The name that documents of existing releases use, unless the prefix has a directory of that name.
if(CMAKE_INSTALL_LIBDIR STREQUAL "lib")
  install(CODE [[
    set(link "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib64")
    if(NOT EXISTS "${link}" AND NOT IS_SYMLINK "${link}")
      file(CREATE_LINK lib "${link}" SYMBOLIC)
    endif()]])
endif()
if(DFTRACER_ISAL_BUNDLE)
  install(FILES ${DFTRACER_ISAL_BUNDLE} RENAME ${DFTRACER_ISAL_SONAME}
    DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
# A wheel that links its dependencies statically carries their licences.
if(SKBUILD_METADATA_DIR AND DEFINED ENV{DFTRACER_WHEEL_DEPENDENCIES})
  install(DIRECTORY $ENV{DFTRACER_WHEEL_DEPENDENCIES}/licenses/
    DESTINATION ${SKBUILD_METADATA_DIR}/licenses)
endif()
install(DIRECTORY include/dftracer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

install(EXPORT dftracer-targets NAMESPACE dftracer:: DESTINATION ${package_dir})
configure_package_config_file(cmake/dftracer-config.cmake.in
  ${PROJECT_BINARY_DIR}/dftracer-config.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dftracer-config-version.cmake
  COMPATIBILITY AnyNewerVersion) # it speaks the interfaces of 1.x and 2.x
install(FILES
  ${PROJECT_BINARY_DIR}/dftracer-config.cmake
  ${PROJECT_BINARY_DIR}/dftracer-config-version.cmake
  DESTINATION ${package_dir})

# pkg-config knows where the file lies, so a moved tree still works if the way up is relative.
file(RELATIVE_PATH DFTRACER_PC_PREFIX
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" DFTRACER_PC_PREFIX ${DFTRACER_PC_PREFIX})
configure_file(cmake/dftracer.pc.in ${PROJECT_BINARY_DIR}/dftracer.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dftracer.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Module files, which find the prefix by their own place: a wheel has none, and an absolute place of
# shared data has no way up to the prefix.
if(NOT SKBUILD AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_DATAROOTDIR}")
  set(module_dir ${CMAKE_INSTALL_DATAROOTDIR}/modulefiles/dftracer)
  string(REGEX MATCHALL "[^/]+" module_path "${module_dir}/file")
  list(LENGTH module_path DFTRACER_MODULE_DEPTH)
  configure_file(cmake/modulefile.lua.in ${PROJECT_BINARY_DIR}/modulefile.lua @ONLY)
  configure_file(cmake/modulefile.tcl.in ${PROJECT_BINARY_DIR}/modulefile.tcl @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/modulefile.lua DESTINATION ${module_dir}
    RENAME ${DFTRACER_VERSION}.lua)
  install(FILES ${PROJECT_BINARY_DIR}/modulefile.tcl DESTINATION ${module_dir}
    RENAME ${DFTRACER_VERSION})
endif()

if(TARGET dftracer_python)
  install(TARGETS dftracer_python dftracer_reader_python LIBRARY DESTINATION .)
  # Beside the package, where Python looks for it when it starts: lines that do nothing unless
  # their variables (DFTRACER_TORCH, DFTRACER_STORES, ...) are set.
  if(SKBUILD_PLATLIB_DIR)
    install(FILES python/dftracer.pth DESTINATION ${SKBUILD_PLATLIB_DIR})
  endif()
endif()
