# MinSizeRel: what no program reaches is left out when it is linked, functions and data one by one, and
# so are tables that only tell a debugger or a C++ exception the way up the stack.
if(CMAKE_BUILD_TYPE STREQUAL "MinSizeRel")
    add_compile_options(-ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables
        -fno-unwind-tables)
    add_link_options(-Wl,--gc-sections -Wl,--as-needed -Wl,-O1)
endif()
