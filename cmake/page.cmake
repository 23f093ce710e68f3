# SPDX-License-Identifier: MIT
# tarn_page(OUT FILES...) writes a C file that has the contents of the files, under their names,
# as src/serve/page.h describes. The assembler reads them, so that any size takes no time.
function(tarn_page out)
    set(rows "")
    set(blocks "")
    set(i 0)
    foreach(file ${ARGN})
        cmake_path(GET file FILENAME name)
        string(APPEND blocks
               "__asm__(\".section .rodata\\n.balign 64\\ntn_page_${i}: .incbin \\\"${file}\\\"\\n\"\n"
               "        \"tn_page_end_${i}: .byte 0\\n.previous\\n\");\n"
               "extern const unsigned char tn_page_${i}[], tn_page_end_${i}[];\n")
        string(APPEND rows "    {\"${name}\", tn_page_${i}, tn_page_end_${i}},\n")
        math(EXPR i "${i} + 1")
    endforeach()
    file(CONFIGURE OUTPUT ${out} CONTENT
         "#include \"serve/page.h\"\n\n${blocks}\nconst struct tn_page_bytes tn_page_bytes[] = {\n${rows}    {0},\n};\n"
         @ONLY)
    set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${ARGN}")
endfunction()
