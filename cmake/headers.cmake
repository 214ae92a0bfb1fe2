# headers.cmake: one translation unit a header, so that every header is known to compile alone.

function(duet_check_headers)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/runtime/*.hpp ${PROJECT_SOURCE_DIR}/text/*.hpp ${PROJECT_SOURCE_DIR}/device/*.hpp
       ${PROJECT_SOURCE_DIR}/actors/*.hpp ${PROJECT_SOURCE_DIR}/http/*.hpp ${PROJECT_SOURCE_DIR}/config/*.hpp)
  list(FILTER headers EXCLUDE REGEX "^runtime/examples/")   # programs of their own, against an installed runtime/
  set(sources)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name ${header})
    set(source ${PROJECT_BINARY_DIR}/header_checks/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(duet_header_checks OBJECT ${sources})
  target_include_directories(duet_header_checks PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(duet_header_checks PRIVATE duet_options Boost::headers PkgConfig::YAMLCPP PkgConfig::PCRE2 PkgConfig::HWY OpenSSL::Crypto)
endfunction()
