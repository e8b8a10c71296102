# One static library a folder. What a folder may use is what it names here: a unit test links its
# folder's library alone, so a call up or sideways does not link.
function(ss_layer name)
    cmake_parse_arguments(arg "" "" "SOURCES;LAYERS;LIBRARIES" ${ARGN})
    add_library(ss_${name} STATIC ${arg_SOURCES})
    target_include_directories(ss_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/src)
    if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
        target_compile_definitions(ss_${name} PRIVATE _GNU_SOURCE)
    endif()
    foreach(layer ${arg_LAYERS})
        target_link_libraries(ss_${name} PUBLIC ss_${layer})
    endforeach()
    target_link_libraries(ss_${name} PRIVATE ${arg_LIBRARIES})
endfunction()
