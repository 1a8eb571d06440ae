/* An image is the compiled device code of one source, embedded in the library. */
#ifndef TGI_CUDA_IMAGE_H
#define TGI_CUDA_IMAGE_H

#include "cuda/runtime/device.h"

/* Returns the architectures of the embedded images, "sm_75 sm_80 ... compute_90", or "none", in
 * static storage. */
const char *tgi_cuda_architectures(void);

/* Returns 1 if the images have code that is compiled for the instruction set. */
int tgi_cuda_has_code(tgi_isa isa);

/* Returns 1 if a chip of the compute capability, 10 major + minor, runs code of the instruction set
 * from an image with code for these architectures: "sm_80 sm_90a compute_90". */
int tgi_cuda_serves(const char *codes, int capability, tgi_isa isa);

/* Returns 1 if the chip runs code of the instruction set from the image. A build without any code
 * plans as if it had all images. */
int tgi_cuda_has_image(const char *image, int capability, tgi_isa isa);

/* Returns 1 if the code that the chip runs, of code for these architectures, is compiled for chips
 * with the feature (core/arch.h). PTX for earlier chips is not. */
int tgi_cuda_code_uses(const char *codes, int capability, unsigned feature);

/* Does the same for the code of an image. A build without any code answers by the chip. */
int tgi_cuda_image_uses(const char *image, int capability, unsigned feature);

/* Finds function `symbol` of the image, and loads the image at its first use on the device. The
 * device's context is current and its lock is held. Errors: NO_DEVICE (no code for this chip),
 * OUT_OF_MEMORY, DEVICE_FAILURE. */
tg_status tgi_cuda_find_function(tgi_cuda_device *device, const char *image, const char *symbol,
                                 void **function);

#endif
