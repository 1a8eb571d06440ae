# Removes what `make install` put down, by the list that it left in the build folder, and the
# folders of tilegemm that are empty then. DESTDIR counts as it did for the installation.
# usage: cmake -DMANIFEST=build/installed.txt -P cmake/uninstall.cmake
if(NOT EXISTS "${MANIFEST}")
    message(FATAL_ERROR "${MANIFEST} is not there: nothing was installed from this folder; run "
                        "`make install` with the same PREFIX first")
endif()
file(STRINGS "${MANIFEST}" files)
set(count 0)
foreach(file IN LISTS files)
    string(PREPEND file "$ENV{DESTDIR}")
    if(EXISTS "${file}" OR IS_SYMLINK "${file}")
        file(REMOVE "${file}")
        if(EXISTS "${file}" OR IS_SYMLINK "${file}")
            message(FATAL_ERROR "${file} cannot be removed; run with the rights of the "
                                "installation")
        endif()
        math(EXPR count "${count} + 1")
    endif()
    get_filename_component(folder "${file}" DIRECTORY)
    while(folder MATCHES "tilegemm")
        execute_process(COMMAND rmdir "${folder}" RESULT_VARIABLE status ERROR_QUIET)
        if(status) # rmdir leaves a folder that is not empty
            break()
        endif()
        get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
endforeach()
file(REMOVE "${MANIFEST}")
message(STATUS "${count} files removed")
