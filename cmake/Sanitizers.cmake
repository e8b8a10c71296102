# SS_SANITIZE=address,undefined or thread. Code sees SS_SANITIZED and then leaves memory to the
# sanitizer: no heaps of our own, free slots poisoned.
if(SS_SANITIZE)
    add_compile_options(-fsanitize=${SS_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${SS_SANITIZE})
    if(SS_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
    add_compile_definitions(SS_SANITIZED=1)
    add_compile_options(-UNDEBUG) # assertions are checked wherever a sanitizer looks
endif()
if(SS_COVERAGE)
    add_compile_options(--coverage)
    add_link_options(--coverage)
endif()
