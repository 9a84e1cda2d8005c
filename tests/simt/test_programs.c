/* test_programs.c - the tests of test_simt.c that run whole programs: kernels that wait, inline PTX, what stands in
 * for the toolkit's headers, and the kill table. */
#include "test_simt.c"
