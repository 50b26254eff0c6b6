# kvwitness_bench: the benchmarks of every room in one program, each beside the code that it measures.
if(NOT KVWITNESS_BENCHMARKS)
  return()
endif()
find_package(benchmark REQUIRED)
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/trace/bench/*.cpp ${PROJECT_SOURCE_DIR}/core/bench/*.cpp
                                          ${PROJECT_SOURCE_DIR}/verify/bench/*.cpp ${PROJECT_SOURCE_DIR}/reports/bench/*.cpp)
add_executable(kvwitness_bench ${bench_sources})
target_include_directories(kvwitness_bench PRIVATE ${PROJECT_SOURCE_DIR}/trace/bench)
target_link_libraries(kvwitness_bench PRIVATE kvwitness::reports fmt::fmt nlohmann_json::nlohmann_json
                                              benchmark::benchmark benchmark::benchmark_main kvwitness_flags)
kvwitness_link_probe(kvwitness_bench)

# Peers are measured where they are installed; a row without its peer is skipped with a word.
find_package(simdjson QUIET)
target_compile_definitions(kvwitness_bench PRIVATE KVWITNESS_HAS_SIMDJSON=$<BOOL:${simdjson_FOUND}>)
if(simdjson_FOUND)
  target_link_libraries(kvwitness_bench PRIVATE simdjson::simdjson)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # On demand takes the instruction set that it is compiled for.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/trace/bench/peer_simdjson.cpp PROPERTIES COMPILE_OPTIONS -march=haswell)
  endif()
endif()
find_package(BLAS QUIET)
target_compile_definitions(kvwitness_bench PRIVATE KVWITNESS_HAS_BLAS=$<BOOL:${BLAS_FOUND}>)
if(BLAS_FOUND)
  target_link_libraries(kvwitness_bench PRIVATE ${BLAS_LIBRARIES})
endif()
