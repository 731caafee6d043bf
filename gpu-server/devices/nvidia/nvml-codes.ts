/** Names and meanings of NVML's return values (nvmlReturn_t in nvml.h of CUDA 12 and 13). */
const NVML_CODES: Readonly<Record<number, readonly [name: string, words: string]>> = {
  1: ['NVML_ERROR_UNINITIALIZED', 'NVML was not initialized'],
  2: ['NVML_ERROR_INVALID_ARGUMENT', 'an argument is invalid'],
  3: ['NVML_ERROR_NOT_SUPPORTED', 'this GPU or driver does not support it'],
  4: ['NVML_ERROR_NO_PERMISSION', 'this user lacks permission'],
  5: ['NVML_ERROR_ALREADY_INITIALIZED', 'NVML is already initialized'],
  6: ['NVML_ERROR_NOT_FOUND', 'nothing was found'],
  7: ['NVML_ERROR_INSUFFICIENT_SIZE', 'the answer is longer than the buffer'],
  8: ['NVML_ERROR_INSUFFICIENT_POWER', 'external power cables are not attached properly'],
  9: ['NVML_ERROR_DRIVER_NOT_LOADED', 'the NVIDIA driver is not loaded'],
  10: ['NVML_ERROR_TIMEOUT', 'the driver timed out'],
  11: ['NVML_ERROR_IRQ_ISSUE', 'the kernel found an interrupt problem with a GPU'],
  12: ['NVML_ERROR_LIBRARY_NOT_FOUND', 'the NVML library could not be found or loaded'],
  13: ['NVML_ERROR_FUNCTION_NOT_FOUND', 'this version of NVML does not have the function'],
  14: ['NVML_ERROR_CORRUPTED_INFOROM', "the GPU's infoROM is corrupted"],
  15: ['NVML_ERROR_GPU_IS_LOST', 'the GPU has fallen off the bus'],
  16: ['NVML_ERROR_RESET_REQUIRED', 'the GPU must be reset before it can be used again'],
  17: ['NVML_ERROR_OPERATING_SYSTEM', 'the operating system or a cgroup blocks the GPU'],
  18: [
    'NVML_ERROR_LIB_RM_VERSION_MISMATCH',
    'the driver and its library have different versions; reboot or reload the driver',
  ],
  19: ['NVML_ERROR_IN_USE', 'the GPU is in use'],
  20: ['NVML_ERROR_MEMORY', 'there is not enough memory'],
  21: ['NVML_ERROR_NO_DATA', 'there is no data'],
  22: ['NVML_ERROR_VGPU_ECC_NOT_SUPPORTED', 'a vGPU cannot do it while ECC is on'],
  23: ['NVML_ERROR_INSUFFICIENT_RESOURCES', 'a resource other than memory has run out'],
  24: ['NVML_ERROR_FREQ_NOT_SUPPORTED', 'the frequency is not supported'],
  25: ['NVML_ERROR_ARGUMENT_VERSION_MISMATCH', 'the version of a structure is not supported'],
  26: ['NVML_ERROR_DEPRECATED', 'the function is deprecated'],
  27: ['NVML_ERROR_NOT_READY', 'the system is not ready'],
  28: ['NVML_ERROR_GPU_NOT_FOUND', 'no GPU was found'],
  29: ['NVML_ERROR_INVALID_STATE', 'the state does not allow it'],
  30: ['NVML_ERROR_RESET_TYPE_NOT_SUPPORTED', 'this kind of reset is not supported'],
  999: ['NVML_ERROR_UNKNOWN', 'the driver reports an internal error'],
}

export const NVML_SUCCESS = 0
export const NVML_NOT_SUPPORTED = 3
export const NVML_NOT_FOUND = 6
export const NVML_INSUFFICIENT_SIZE = 7

/** Example: `the NVIDIA driver is not loaded (NVML_ERROR_DRIVER_NOT_LOADED)`. */
export function nvmlWords(code: number): string {
  const known = NVML_CODES[code]
  return known === undefined ? `NVML answered with the unknown code ${code}` : `${known[1]} (${known[0]})`
}
