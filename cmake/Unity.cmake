# overlap_unity(target): eight of its sources are compiled as one, which takes half the time, since most of it goes into what
# they include. -DOVERLAP_UNITY=OFF for who edits them often: a change then compiles one source, and not its seven neighbours.
# (.ci/run has it off once, and so shows that each source includes what it needs.)
option(OVERLAP_UNITY "Compile eight sources of a library or of a test program as one" ON)

function(overlap_unity target)
  if(OVERLAP_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # Not CUDA sources, which CMake joins from 3.31 on: each keeps names of its own in a nameless namespace.
    get_target_property(cuda_sources ${target} SOURCES)
    list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${cuda_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    # What one source keeps in a nameless namespace looks to g++ like a header's.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
