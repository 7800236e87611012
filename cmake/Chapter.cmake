# overlap_add_chapter(NN_name): the program of chapters/NN_name, as bin/NN_name.
function(overlap_add_chapter name)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/chapters/${name}/main.cu)
  overlap_gpu_sources(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/chapters)
  target_link_libraries(${name} PRIVATE overlap overlap_warnings)
endfunction()
