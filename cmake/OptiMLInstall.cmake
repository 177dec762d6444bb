# cmake --install: the programs, the emulator's runtime, and a package for find_package(OptiML). The tree can be moved:
# programs find each other and ../lib by their own place.
include(CMakePackageConfigHelpers)

foreach(program optiml optiml-clang optiml-gen optiml-mcp optiml-opt optiml-record optiml-replay optiml-run
    optiml-search optiml-tune optiml-verify optiml-worker)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()
foreach(library optiml-cudart optiml-capture)
  if(TARGET ${library})
    install(TARGETS ${library} ARCHIVE DESTINATION lib LIBRARY DESTINATION lib)
  endif()
endforeach()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/OptiMLConfig.cmake.in"
  "${CMAKE_BINARY_DIR}/cmake/OptiMLConfig.cmake" INSTALL_DESTINATION lib/cmake/OptiML)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/cmake/OptiMLConfigVersion.cmake"
  COMPATIBILITY SameMajorVersion)
install(FILES "${CMAKE_BINARY_DIR}/cmake/OptiMLConfig.cmake" "${CMAKE_BINARY_DIR}/cmake/OptiMLConfigVersion.cmake"
  DESTINATION lib/cmake/OptiML)
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/README.md" DESTINATION share/doc/optiml)
