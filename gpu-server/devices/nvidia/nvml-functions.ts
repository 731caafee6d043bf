import { type ForeignFunction, type ForeignLibrary } from './foreign-library.ts'

/** A handle is a pointer that is only passed on; it is passed as an integer of the same size. */
const HANDLE = 'uint64_t'
const OUT = 'void *'
const UINT = 'uint32_t'

/** The used functions of libnvidia-ml; null: this version lacks the function, and there is a fallback. */
export interface NvmlFunctions {
  readonly init: ForeignFunction
  readonly driverVersion: ForeignFunction
  readonly count: ForeignFunction
  readonly handle: ForeignFunction
  readonly uuid: ForeignFunction
  readonly name: ForeignFunction
  readonly memoryV1: ForeignFunction
  readonly memoryV2: ForeignFunction | null
  readonly utilization: ForeignFunction
  readonly migMode: ForeignFunction | null
  readonly processUtilization: ForeignFunction | null
  /** Compute, graphics and MPS clients, each in the newest version available. */
  readonly processLists: readonly ProcessList[]
}

export interface ProcessList {
  readonly name: string
  readonly list: ForeignFunction
  /** Size of one entry: pid and used bytes at offsets 0 and 8; from version 2 on the MIG instance follows. */
  readonly entryBytes: 16 | 24
}

/** Throws HelperFault when the library is too old. */
export function nvmlFunctions(library: ForeignLibrary): NvmlFunctions {
  return {
    init: library.need('nvmlInit_v2', []),
    driverVersion: library.need('nvmlSystemGetDriverVersion', [OUT, UINT]),
    count: library.need('nvmlDeviceGetCount_v2', [OUT]),
    handle: library.need('nvmlDeviceGetHandleByIndex_v2', [UINT, OUT]),
    uuid: library.need('nvmlDeviceGetUUID', [HANDLE, OUT, UINT]),
    name: library.need('nvmlDeviceGetName', [HANDLE, OUT, UINT]),
    memoryV1: library.need('nvmlDeviceGetMemoryInfo', [HANDLE, OUT]),
    memoryV2: library.find('nvmlDeviceGetMemoryInfo_v2', [HANDLE, OUT]),
    utilization: library.need('nvmlDeviceGetUtilizationRates', [HANDLE, OUT]),
    migMode: library.find('nvmlDeviceGetMigMode', [HANDLE, OUT, OUT]),
    processUtilization: library.find('nvmlDeviceGetProcessUtilization', [HANDLE, OUT, OUT, 'uint64_t']),
    processLists: ['Compute', 'Graphics', 'MPSCompute'].flatMap((kind) =>
      newest(library, `nvmlDeviceGet${kind}RunningProcesses`),
    ),
  }
}

function newest(library: ForeignLibrary, name: string): ProcessList[] {
  for (const [suffix, entryBytes] of [
    ['_v3', 24],
    ['_v2', 24],
    ['', 16],
  ] as const) {
    const list = library.find(name + suffix, [HANDLE, OUT, OUT])
    if (list !== null) return [{ name: name + suffix, list, entryBytes }]
  }
  return []
}
