# Warnings that both supported compilers know. Errors only where SS_WERROR asks for it.
add_compile_options(
    -Wall -Wextra -Wcast-align=strict -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wwrite-strings -Wvla -Wundef -Wformat=2)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    # clang has no "strict" form; its plain form says the same.
    add_compile_options(-Wno-unknown-warning-option -Wcast-align)
endif()
if(SS_WERROR)
    add_compile_options(-Werror)
endif()
