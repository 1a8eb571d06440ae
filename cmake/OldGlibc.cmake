# tg_link_old_glibc(target): lets a module of x86-64 run with glibc 2.28 although a later one links
# it. A function that got another version since is bound to its first one, by empty libraries that
# have it under the names of the real ones. Link what calls the functions first. A function that is
# missing here shows when auditwheel reads the wheel.

# Each row is a library, a version, and the functions that had it in glibc 2.28.
set(TG_OLD_GLIBC
    "libm.so.6 GLIBC_2.2.5 exp exp2 expf log log2 logf pow powf"
    "libdl.so.2 GLIBC_2.2.5 dlclose dlerror dlopen dlsym dladdr"
    "libpthread.so.0 GLIBC_2.2.5 pthread_attr_getstacksize pthread_attr_setstacksize \
pthread_create pthread_join pthread_detach pthread_key_create pthread_key_delete \
pthread_getspecific pthread_setspecific pthread_mutex_trylock pthread_once pthread_sigmask \
sem_destroy sem_init sem_post sem_wait"
    "libpthread.so.0 GLIBC_2.3.4 pthread_setaffinity_np pthread_attr_setaffinity_np"
    "libpthread.so.0 GLIBC_2.12 pthread_setname_np")

function(tg_link_old_glibc target)
    if(NOT "${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}" MATCHES "^Linux (x86_64|amd64)$")
        return()
    endif()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/old_glibc")
    set(files "")
    foreach(row IN LISTS TG_OLD_GLIBC)
        separate_arguments(words UNIX_COMMAND "${row}")
        list(POP_FRONT words file version)
        list(APPEND files ${file})
        list(JOIN words "; " names)
        string(APPEND versions_of_${file} "${version} { global: ${names}; };\n")
        foreach(name IN LISTS words)
            string(APPEND source_of_${file} ".globl ${name}\n.type ${name}, @function\n${name}:\n")
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES files)
    foreach(file IN LISTS files)
        file(WRITE "${folder}/${file}.map" "${versions_of_${file}}")
        file(WRITE "${folder}/${file}.s"
             "${source_of_${file}}.section .note.GNU-stack,\"\",@progbits\n")
        # They are made now, since CMake writes -lm for a library that it cannot read.
        execute_process(
            COMMAND "${CMAKE_C_COMPILER}" -shared -nostdlib -Wl,-soname,${file}
                    "-Wl,--version-script=${folder}/${file}.map" -o "${folder}/${file}"
                    "${folder}/${file}.s"
            COMMAND_ERROR_IS_FATAL ANY)
        target_link_libraries(${target} PRIVATE "${folder}/${file}")
    endforeach()
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endfunction()
