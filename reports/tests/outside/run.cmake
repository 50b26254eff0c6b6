# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DGENERATOR=... -DCXX=... -DPROBE=ON|OFF -P run.cmake
# Installs the build into a stage of its own, builds this project against it, and runs it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/stage)
# As a user has it who put the program of the build tree into PATH: the package is the installed one all the same.
run(${CMAKE_COMMAND} -E env PATH=${BUILD}/bin:${WORK}/stage/bin:$ENV{PATH} ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build
    -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build ${WORK}/build)
if(PROBE)
  run(${WORK}/build/outside)
else()
  run(${WORK}/build/outside --no-probe)
endif()
# What the documents link to is installed beside them.
foreach(document README.md LICENSE trace/events.md trace/schema/trace-1.json scenarios/FORMAT.md
                 core/PROTOCOL.md reports/examples/foreign/ring.py reports/examples/own_store/main.cpp)
  if(NOT EXISTS ${WORK}/stage/share/doc/kvwitness/${document})
    message(FATAL_ERROR "${document} is not installed")
  endif()
endforeach()
# The examples are projects of their own: a store in C++, and a plug-in in C, conform outside of this tree.
set(examples ${WORK}/stage/share/doc/kvwitness/reports/examples)
foreach(example own_store foreign)
  run(${CMAKE_COMMAND} -S ${examples}/${example} -B ${WORK}/${example} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=${WORK}/stage)
  run(${CMAKE_COMMAND} --build ${WORK}/${example})
endforeach()
run(${WORK}/own_store/own_store)
run(${WORK}/stage/bin/kvwitness conform --plugin ${WORK}/foreign/libring.so)
# The installed program finds the installed scenarios beside itself.
run(${WORK}/stage/bin/kvwitness run --filter ring/wrap-identity)
file(REMOVE_RECURSE ${WORK})
