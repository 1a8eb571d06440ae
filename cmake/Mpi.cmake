# Sets TG_HAVE_MPI, which says whether the library of distributed products can be built. Sanitizers
# and fuzz targets leave it out: MPI keeps memory of its own until the process ends.
tg_add_part_option(TG_MPI "Distributed products")
set(missing "")
if(TG_SANITIZE OR TG_FUZZ)
    list(APPEND missing "a build without sanitizers")
else()
    find_package(MPI QUIET COMPONENTS C)
    if(NOT MPI_C_FOUND)
        list(APPEND missing libopenmpi-dev)
    endif()
endif()
tg_choose_part(TG_MPI TG_HAVE_MPI "distributed products" ${missing})
