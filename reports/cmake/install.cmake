# find_package(kvwitness): targets kvwitness::trace .. kvwitness::reports, kvwitness::probe where this build has it, and
# kvwitness_LIBRARY_DIR, the scenarios.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvwitness)

install(EXPORT kvwitnessTargets NAMESPACE kvwitness:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kvwitnessConfig.cmake.in ${PROJECT_BINARY_DIR}/kvwitnessConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvwitnessConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kvwitnessConfig.cmake ${PROJECT_BINARY_DIR}/kvwitnessConfigVersion.cmake DESTINATION ${package_dir})

# The probe interposes malloc, so it is linked into executables as objects: an archive's members that nothing names
# would be left out.
if(TARGET kvwitness_probe)
  install(FILES $<TARGET_OBJECTS:kvwitness_probe> DESTINATION ${CMAKE_INSTALL_LIBDIR}/kvwitness/probe)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/library DESTINATION ${CMAKE_INSTALL_DATADIR}/kvwitness)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios/schema/ ${PROJECT_SOURCE_DIR}/trace/schema/ ${PROJECT_SOURCE_DIR}/reports/schema/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/kvwitness/schema)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
