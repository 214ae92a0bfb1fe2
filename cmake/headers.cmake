# headers.cmake: every header is known to compile alone. One that its own source file includes first is proven by that file
# (tools/clang_check.sh parses it without a precompiled header); each other one gets a translation unit here.

function(duet_check_headers)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/runtime/*.hpp ${PROJECT_SOURCE_DIR}/text/*.hpp ${PROJECT_SOURCE_DIR}/device/*.hpp
       ${PROJECT_SOURCE_DIR}/actors/*.hpp ${PROJECT_SOURCE_DIR}/http/*.hpp ${PROJECT_SOURCE_DIR}/config/*.hpp)
  list(FILTER headers EXCLUDE REGEX "^runtime/examples/")   # programs of their own, against an installed runtime/
  set(sources)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "hpp$" "cpp" own ${PROJECT_SOURCE_DIR}/${header})
    if(EXISTS ${own})
      file(STRINGS ${own} first REGEX "^#include" LIMIT_COUNT 1)
      if(first STREQUAL "#include \"${header}\"")
        continue()
      endif()
    endif()
    string(REPLACE "/" "_" name ${header})
    set(source ${PROJECT_BINARY_DIR}/header_checks/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(duet_header_checks OBJECT ${sources})
  target_include_directories(duet_header_checks PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(duet_header_checks PRIVATE duet_options Boost::headers PkgConfig::YAMLCPP PkgConfig::PCRE2 PkgConfig::HWY OpenSSL::Crypto)
endfunction()
