/**
 * Names and meanings of the driver's return values that checkpointing and initialization use (CUresult in
 * cuda.h).
 */
const CUDA_CODES: Readonly<Record<number, readonly [name: string, words: string]>> = {
  1: ['CUDA_ERROR_INVALID_VALUE', 'the process is unknown to CUDA, or an argument is invalid'],
  2: ['CUDA_ERROR_OUT_OF_MEMORY', 'out of memory'],
  3: ['CUDA_ERROR_NOT_INITIALIZED', 'CUDA is not initialized'],
  4: ['CUDA_ERROR_DEINITIALIZED', 'CUDA is shutting down'],
  34: ['CUDA_ERROR_STUB_LIBRARY', "libcuda is the toolkit's stub, not the driver's library"],
  46: ['CUDA_ERROR_DEVICE_UNAVAILABLE', 'the GPU is in use by another process or in a prohibited mode'],
  100: ['CUDA_ERROR_NO_DEVICE', 'no CUDA device'],
  101: ['CUDA_ERROR_INVALID_DEVICE', 'no such CUDA device'],
  201: ['CUDA_ERROR_INVALID_CONTEXT', 'no context, or an invalid one'],
  214: ['CUDA_ERROR_ECC_UNCORRECTABLE', 'an ECC error that cannot be corrected'],
  304: ['CUDA_ERROR_OPERATING_SYSTEM', 'a call of the operating system failed'],
  400: ['CUDA_ERROR_INVALID_HANDLE', 'an invalid handle'],
  401: ['CUDA_ERROR_ILLEGAL_STATE', 'the process is in another state'],
  500: ['CUDA_ERROR_NOT_FOUND', 'not found'],
  600: ['CUDA_ERROR_NOT_READY', 'not ready in time'],
  700: ['CUDA_ERROR_ILLEGAL_ADDRESS', 'the process used an illegal address'],
  719: ['CUDA_ERROR_LAUNCH_FAILED', 'a kernel of the process has failed'],
  800: ['CUDA_ERROR_NOT_PERMITTED', 'not permitted'],
  801: ['CUDA_ERROR_NOT_SUPPORTED', 'not supported by this driver or GPU'],
  802: ['CUDA_ERROR_SYSTEM_NOT_READY', 'a system service, such as the fabric manager, is not ready'],
  803: ['CUDA_ERROR_SYSTEM_DRIVER_MISMATCH', 'the kernel driver and libcuda have different versions'],
  999: ['CUDA_ERROR_UNKNOWN', 'an internal error of the driver'],
}

export const CUDA_SUCCESS = 0
export const CUDA_OUT_OF_MEMORY = 2
export const CUDA_NOT_READY = 600
export const CUDA_NOT_SUPPORTED = 801

/** Example: `out of memory (CUDA_ERROR_OUT_OF_MEMORY)`. */
export function cudaWords(code: number): string {
  const known = CUDA_CODES[code]
  return known === undefined ? `the driver answered with code ${code}` : `${known[1]} (${known[0]})`
}
