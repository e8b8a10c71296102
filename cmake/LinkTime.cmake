# SS_LTO=ON: the compiler sees all files of a program when it links it, so that calls from folder to
# folder can be inlined. The folders stay static libraries; what they hold is then the compiler's own
# form of the code, which its own ar and ranlib read.
if(SS_LTO)
    include(CheckIPOSupported)
    check_ipo_supported(LANGUAGES C)
    set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # One program is linked by as many jobs as there are processors, without a warning about it.
        add_link_options(-flto=auto)
    endif()
endif()
