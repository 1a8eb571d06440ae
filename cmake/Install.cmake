# Installs the library with what find_package(tilegemm) and pkg-config need. The command installs
# itself in cli/CMakeLists.txt.
include(CMakePackageConfigHelpers)

install(TARGETS tilegemm tilegemm_static EXPORT tilegemmTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES include/tilegemm.h include/tilegemm_attention.h include/tilegemm_lab.h
              include/tilegemm_sim.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TG_HAVE_MPI)
    install(TARGETS tilegemm_mpi EXPORT tilegemmMpiTargets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(FILES include/tilegemm_mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN man EXCLUDE)

# The manual pages of the functions come from the headers.
find_program(TG_AWK NAMES mawk gawk awk)
if(TG_AWK)
    set(manual3 "${PROJECT_BINARY_DIR}/manual3")
    file(GLOB public_headers CONFIGURE_DEPENDS include/*.h)
    add_custom_command(OUTPUT "${manual3}/tilegemm.3"
        COMMAND ${CMAKE_COMMAND} -E make_directory "${manual3}"
        COMMAND "${TG_AWK}" -v "out=${manual3}" -v "version=${PROJECT_VERSION}"
                -f "${PROJECT_SOURCE_DIR}/cmake/manual3.awk" ${public_headers}
        DEPENDS ${public_headers} "${PROJECT_SOURCE_DIR}/cmake/manual3.awk"
        VERBATIM)
    add_custom_target(tilegemm_manual3 ALL DEPENDS "${manual3}/tilegemm.3")
    install(DIRECTORY "${manual3}/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
else()
    message(STATUS "manual pages of functions: left out, they need mawk")
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tilegemm")
install(EXPORT tilegemmTargets NAMESPACE tilegemm:: DESTINATION ${package_dir})
if(TG_HAVE_MPI)
    install(EXPORT tilegemmMpiTargets NAMESPACE tilegemm:: DESTINATION ${package_dir})
endif()
configure_package_config_file(cmake/tilegemmConfig.cmake.in tilegemmConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tilegemmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tilegemmConfig.cmake"
              "${PROJECT_BINARY_DIR}/tilegemmConfigVersion.cmake" DESTINATION ${package_dir})

# The prefix is found from the file's own place, so that an installed tree can be moved.
file(RELATIVE_PATH TG_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" TG_PC_PREFIX "${TG_PC_PREFIX}")
file(RELATIVE_PATH TG_PC_LIBDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH TG_PC_INCLUDEDIR "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")

# tg_install_pc(TG_PC_NAME description required_package private_libs): what pkg-config reads.
function(tg_install_pc TG_PC_NAME TG_PC_DESCRIPTION TG_PC_REQUIRES TG_PC_PRIVATE_LIBS)
    configure_file(cmake/tilegemm.pc.in ${TG_PC_NAME}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${TG_PC_NAME}.pc"
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# A program linked to libtilegemm.a must add these libraries. pkg-config --static prints them.
tg_install_pc(tilegemm "${PROJECT_DESCRIPTION}" "" "${CMAKE_THREAD_LIBS_INIT} -lm -ldl")
if(TG_HAVE_MPI)
    tg_install_pc(tilegemm_mpi "Products of matrices distributed over MPI; compile with mpicc"
                  tilegemm "")
endif()
