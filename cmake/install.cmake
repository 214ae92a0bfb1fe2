# install.cmake: runtime/ as a library of other programs: find_package(duet COMPONENTS runtime inspect simulation).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(duet_known_components runtime inspect simulation)
set(duet_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/duet)

# Hosts include <duet/runtime/system.hpp>: a folder of theirs may well be called runtime/. Here the root is the project's, so the
# project's includes get their prefix on the way.
function(duet_install_headers component folders)
  install(CODE "
    set(source \"${PROJECT_SOURCE_DIR}\")
    set(target \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/duet\")
    set(folders \"${folders}\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")
  " COMPONENT ${component})
endfunction()

foreach(component IN LISTS duet_known_components)
  if(NOT TARGET duet_${component})
    continue()
  endif()
  add_library(duet::${component} ALIAS duet_${component})
  target_include_directories(duet_${component} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(duet_${component} PROPERTIES EXPORT_NAME ${component})
  install(TARGETS duet_${component} EXPORT duet_${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component})
  install(EXPORT duet_${component} NAMESPACE duet:: FILE duet_${component}.cmake DESTINATION ${duet_package_dir}
    COMPONENT ${component})
  if(component STREQUAL runtime)
    duet_install_headers(runtime "runtime;runtime/detail")
  else()
    duet_install_headers(${component} "runtime/${component};runtime/${component}/detail")
  endif()
endforeach()

# Whatever changes a layout is told to whoever links us; runtime/detail/configuration.hpp catches who differs all the same.
target_compile_features(duet_runtime PUBLIC cxx_std_20)
if(DUET_AWAITABLE STREQUAL native)   # public: runtime/CMakeLists.txt, since our own targets need it too
  target_compile_definitions(duet_runtime INTERFACE $<INSTALL_INTERFACE:DUET_AWAITABLE=native>)
endif()
if(DUET_SANITIZE)
  target_compile_definitions(duet_runtime INTERFACE $<INSTALL_INTERFACE:DUET_SANITIZED=1>)
  target_link_options(duet_runtime INTERFACE $<INSTALL_INTERFACE:-fsanitize=${DUET_SANITIZE}>)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/duetConfig.cmake.in ${PROJECT_BINARY_DIR}/duetConfig.cmake
  INSTALL_DESTINATION ${duet_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/duetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/duetConfig.cmake ${PROJECT_BINARY_DIR}/duetConfigVersion.cmake
  DESTINATION ${duet_package_dir} COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
