# Code compiled for newer processors may share no symbol with the rest of the library: of a weak symbol the linker keeps
# any copy. So every weak symbol of that object names its instruction set.
# Run as: cmake -DNM=nm -DLIBRARY=libkvwitness_core.a -P wide_symbols.cmake
execute_process(COMMAND ${NM} -C --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "project_avx2[^\n]*:\n([^\n]+\n)*" object "${symbols}")
if(NOT object MATCHES "avx2_kernels")
  message(FATAL_ERROR "${LIBRARY} has no object project_avx2")
endif()
string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]*" weak "${object}")
foreach(symbol IN LISTS weak)
  if(NOT symbol MATCHES "xsimd::avx|DW\\.ref\\.")
    message(FATAL_ERROR "compiled for AVX2, but shared with every processor: ${symbol}")
  endif()
endforeach()
