# cmake --install: the programs, the emulator's runtime, and a package for find_package(OptiML). The tree can be moved:
# programs find each other and ../lib by their own place.
include(CMakePackageConfigHelpers)

foreach(program optiml optiml-apply optiml-clang optiml-diagnose optiml-doctor optiml-gen optiml-mcp optiml-opt
    optiml-record optiml-replay optiml-report optiml-run optiml-search optiml-tune optiml-verify optiml-worker)
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
install(DIRECTORY "${CMAKE_BINARY_DIR}/share/" DESTINATION share)
install(FILES "${CMAKE_SOURCE_DIR}/LICENSE" "${CMAKE_SOURCE_DIR}/README.md" DESTINATION share/doc/optiml)

# A Debian package and a tarball, by cpack.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME optiml)
set(CPACK_PACKAGE_CONTACT "OptiML")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Searches for faster CUDA kernels that compute the same")
set(CPACK_PACKAGING_INSTALL_PREFIX "/usr")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
find_program(OPTIML_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(OPTIML_SHLIBDEPS)
if(OPTIML_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # the libraries that the programs need, with their versions
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libclang-common-22-dev, g++, diffutils")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "nvidia-cuda-toolkit")
include(CPack)
