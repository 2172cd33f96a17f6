/* The C interface: factors one 3 x 2 matrix and prints R. */
#include <kernelbeam/kernelbeam.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const float a[6] = {3, 4, 0, 1, 2, 2}; /* columns (3, 4, 0) and (1, 2, 2) */
  float h[6];
  float tau[2];
  kernelbeam_sgeqrf call = {0};
  call.batch = 1;
  call.m = 3;
  call.n = 2;
  call.a = a;
  call.h = h;
  call.tau = tau;

  kernelbeam_executor* executor = kernelbeam_executor_create(1);
  if (executor == NULL) return 1;
  size_t bytes = 0;
  kernelbeam_status status = kernelbeam_sgeqrf_batched_workspace(&call, executor, &bytes);
  void* workspace = malloc(bytes + 1);
  if (status == KERNELBEAM_OK)
    status = kernelbeam_sgeqrf_batched(&call, workspace, bytes, executor);
  free(workspace);
  kernelbeam_executor_destroy(executor);
  if (status != KERNELBEAM_OK) {
    fprintf(stderr, "sgeqrf: %s\n", kernelbeam_describe(status));
    return 1;
  }
  printf("R = [%.4f %.4f; 0 %.4f]\n", h[0], h[3], h[4]);
  return fabsf(fabsf(h[0]) - 5) < 1e-5f ? 0 : 1;
}
